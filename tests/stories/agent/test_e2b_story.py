"""Commands at E2B, through the real gateway and E2B's real SDK, beside its API on loopback."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.e2b_server import E2BServer, serve_e2b
from tests.fakes.model_server import Call, Say
from tests.stories.rig import PERSON, Rig


@pytest.fixture
async def e2b(tmp_path: Path) -> AsyncIterator[E2BServer]:
    async with serve_e2b(tmp_path / "e2b") as server:
        yield server


def run(command: str, **more: object) -> Call:
    return Call("run_command", json.dumps({"command": command, **more}))


async def ask(rig: Rig, words: str, answer: str) -> None:
    """A message whose one command is allowed."""
    seen = len(rig.cards())
    rig.telegram.say(PERSON, words)
    await rig.until(lambda: len(rig.cards()) > seen)
    rig.press(rig.cards()[-1], "Approve")
    await rig.shows(answer)
    await rig.quiet()


async def test_a_command_in_a_chat_runs_there_and_its_files_are_here(
    rig: Rig, e2b: E2BServer
) -> None:
    rig.model.script(
        run("cat given.txt > made.txt; echo kept > ~/home.txt; pwd"), Say("It is made."),
        run("cat made.txt ~/home.txt"), Say("It is there."),
    )  # fmt: skip
    await rig.start(**e2b.env())
    rig.workspace().mkdir(parents=True)
    (rig.workspace() / "given.txt").write_text("from here\n")
    await ask(rig, "make it", "It is made.")
    assert str(e2b.folder) in rig.seen(role="tool")[-1]
    assert (rig.workspace() / "made.txt").read_text() == "from here\n"
    (box,) = e2b.running()
    assert box.asked["allow_internet_access"] is False
    await rig.stop()
    assert [one.state for one in e2b.boxes.values()] == ["paused"]

    await rig.start(**e2b.env())
    await ask(rig, "look", "It is there.")
    assert rig.seen(role="tool")[-1].startswith("from here\nkept\n")
    assert e2b.only is box, "it was found again"
    await rig.stop()
