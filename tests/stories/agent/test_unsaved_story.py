"""A workspace too large to be kept: commands that are contained are asked about once."""

from tests.fakes.model_server import Say
from tests.fakes.needs import NEEDS_BWRAP
from tests.stories.rig import ADMIN, Rig, labels, run

pytestmark = NEEDS_BWRAP


async def test_one_press_is_enough_for_a_workspace_that_cannot_be_kept(rig: Rig) -> None:
    await rig.start(SANDBOX_PROVIDER="bwrap", SNAPSHOT_MAX_SIZE_BYTES="200000")
    await rig.until(lambda: rig.log.named("sandbox_checked"))
    rig.telegram.say(ADMIN, "/mode auto")
    await rig.quiet()
    workspace = rig.workspace(ADMIN)
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / "big").write_bytes(b"x" * 300_000)
    rig.model.script(
        run("echo one > a.txt"), run("rm -f a.txt; echo two > b.txt"), Say("the first"),
        run("python3 -c 'open(\"c.txt\", \"w\")'"), Say("the second"),
    )  # fmt: skip
    rig.telegram.say(ADMIN, "go")
    card = await rig.card(ADMIN)
    assert "could not be undone" in card["text"]
    here = next(label for label in labels(card) if "conversation" in label)
    rig.press(card, here, ADMIN)
    await rig.shows("the first", ADMIN)
    rig.telegram.say(ADMIN, "again")
    await rig.shows("the second", ADMIN)
    assert {one.name for one in workspace.iterdir()} >= {"b.txt", "c.txt"}
