"""Commands at E2B, through the real gateway and E2B's real SDK, beside its API on loopback."""

import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.e2b_server import E2BServer, serve_e2b
from tests.fakes.model_server import Hang, Say
from tests.fakes.processes import a_mark, alive, gone
from tests.fakes.waiting import PATIENCE, until
from tests.gateway.process import START, World
from tests.stories.rig import PERSON, Rig, run

pytestmark = pytest.mark.pick("stories in e2b", 1)

LONG = 4 * PATIENCE
"""Seconds until a machine is made and has its programs: some twenty processes start for it here."""


@pytest.fixture
async def e2b(tmp_path: Path) -> AsyncIterator[E2BServer]:
    async with serve_e2b(tmp_path / "e2b") as server:
        yield server


async def start(rig: Rig, e2b: E2BServer) -> None:
    """Until the self-test is through, which starts processes of its own here."""
    checked = len(rig.log.named("sandbox_checked"))
    await rig.start(**e2b.env())
    await until(lambda: len(rig.log.named("sandbox_checked")) > checked, LONG)


async def ask(rig: Rig, words: str, answer: str) -> None:
    """A message whose one command is allowed."""
    seen = len(rig.cards())
    rig.telegram.say(PERSON, words)
    await rig.until(lambda: len(rig.cards()) > seen)
    done = len(rig.seen(role="tool"))
    rig.press(rig.cards()[-1], "Approve")
    await until(lambda: len(rig.seen(role="tool")) > done, LONG)
    await rig.shows(answer)
    await rig.quiet()


async def test_a_command_in_a_chat_runs_there_and_its_files_are_here(
    rig: Rig, e2b: E2BServer
) -> None:
    rig.model.script(
        run("cat given.txt > made.txt; echo kept > ~/home.txt; pwd"), Say("It is made."),
        run("cat made.txt ~/home.txt"), Say("It is there."),
    )  # fmt: skip
    await start(rig, e2b)
    rig.workspace().mkdir(parents=True)
    (rig.workspace() / "given.txt").write_text("from here\n")
    await ask(rig, "make it", "It is made.")
    assert str(e2b.folder) in rig.seen(role="tool")[-1]
    assert (rig.workspace() / "made.txt").read_text() == "from here\n"
    (box,) = e2b.running()
    assert box.asked["allow_internet_access"] is False
    await rig.stop()
    assert [one.state for one in e2b.boxes.values()] == ["paused"]

    await start(rig, e2b)
    await ask(rig, "look", "It is there.")
    assert rig.seen(role="tool")[-1].startswith("from here\nkept\n")
    assert e2b.only is box, "it was found again"
    await rig.stop()


async def test_nothing_runs_on_after_a_gateway_that_is_killed(world: World, e2b: E2BServer) -> None:
    """The next one finds it again; without a next one E2B ends it."""
    mark = a_mark()
    world.model.script(run(f"sleep {mark} & sleep {mark}", timeout=500), Hang())
    first = await world.start(**e2b.env())
    await until(lambda: "sandbox_checked" in first.log, LONG)
    world.telegram.say(PERSON, "go")
    await world.telegram.wait(lambda: bool(cards(world)), START)
    card = cards(world)[0]
    button = card["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
    world.telegram.press(PERSON, card["message_id"], button)
    await until(lambda: alive(mark), LONG)
    assert await first.end(signal.SIGKILL) == -signal.SIGKILL
    (box,) = e2b.running()
    await world.start(**e2b.env())
    assert box.state == "paused", "what was left does not run on"
    box.state = "running"
    e2b.pass_time(301)
    assert box.name not in e2b.boxes
    await gone(mark)


def cards(world: World) -> list[dict[str, Any]]:
    return [message for message in world.telegram.chats[PERSON] if "reply_markup" in message]


async def test_a_conversation_that_is_forgotten_is_forgotten_there(
    rig: Rig, e2b: E2BServer
) -> None:
    rig.model.script(run("echo kept > ~/home.txt"), Say("It is made."))
    await start(rig, e2b)
    await ask(rig, "make it", "It is made.")
    await until(lambda: e2b.snapshots)
    retention = rig.host.services.retention
    assert retention is not None and e2b.running()
    assert await retention.remove(rig.where().id)
    assert (e2b.boxes, e2b.snapshots) == ({}, {})
