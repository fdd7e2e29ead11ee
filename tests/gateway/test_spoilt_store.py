"""A real gateway whose store's files are emptied or cut short, stopped and running."""

import os
import re
import signal
from pathlib import Path

import pytest

from tests.gateway.process import PERSON, START, World

CUT = "I cannot save anything"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


async def talk(world: World, *words: str) -> None:
    for one in words:
        world.telegram.say(PERSON, one)
        await world.telegram.wait_text(PERSON, f"ack {one}", START)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_an_emptied_store_ends_the_start_until_it_is_restored(
    world: World, how: signal.Signals
) -> None:
    run = await world.start()
    await talk(world, "first")
    copy = world.folder / "all.backup"
    assert (await world.command("backup", str(copy)))[0] == 0
    await run.end(how)
    file = world.folder / ".turnkeeper" / "turnkeeper.db"
    os.truncate(file, 0)
    for command in ("run", "status"):
        code, said = await world.command(command)
        assert code == (2 if command == "run" else 1), said
        if command == "run":
            assert f"{file} is empty" in said and "turnkeeper restore FILE --force" in said
    code, said = await world.command("restore", str(copy), "--force")
    assert code == 0, said
    await world.start()
    await talk(world, "second")
    code, said = await world.command(
        "turn", "list", f"telegram:{world.telegram.bot['id']}::{PERSON}::p"
    )
    assert code == 0 and len(re.findall("done|finished", said)) >= 2, said


async def cut_while_used(world: World, log: Path, rest: float) -> str:
    """Cut the log; return what was said after that and is not answered. A log whose changes have
    just been moved into the database is not needed any more: one such is cut again."""
    for words in ("third", "third, again", "third, at last"):
        os.truncate(log, int(log.stat().st_size * rest))
        world.telegram.say(PERSON, words)
        ends = (CUT, f"ack {words}")
        await world.telegram.wait(lambda ends=ends: shows(world, *ends), START)
        if shows(world, CUT):
            return words
    raise AssertionError("the log is never used")


def shows(world: World, *texts: str) -> bool:
    """Return True if a message shows one of them."""
    return any(one in sent["text"] for sent in world.telegram.chats[PERSON] for one in texts)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("rest", [0.0, 0.5])
async def test_what_is_said_after_the_log_was_cut_is_answered_by_the_next_start(
    world: World, rest: float, how: signal.Signals
) -> None:
    run = await world.start()
    await talk(world, "first", "second")
    log = world.folder / ".turnkeeper" / "turnkeeper.db-wal"
    third = await cut_while_used(world, log, rest)
    code, said = await world.command("status")
    assert f"{log} was cut short" in said, said
    await run.end(how)
    await world.start()
    await world.telegram.wait_text(PERSON, f"ack {third}", START)
    await talk(world, "fourth")
    assert (await world.command("doctor"))[1].count("damaged") == 0
