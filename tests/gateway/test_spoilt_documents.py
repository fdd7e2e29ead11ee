"""A real gateway each of whose documents is damaged, also those that only its start and the work
behind read: it starts, says so, and answers."""

import asyncio
import contextlib
import sqlite3

import pytest

from tests.gateway.process import PERSON, START, World

BODIES = {
    "bytes": b"\xff\xfe\x00", "empty": b"", "list": b"[]", "half": b'{"a":', "null": b"null",
    "surrogate": b'"\\ud800"', "deep": b"[" * 100_000, "number": b"1e999", "blanks": b" \n\x00",
}  # fmt: skip
SAID = (
    "hello", "/lang de", "/memory add I like tea", "/rename My talk", "/instructions be short",
    "/jobs add every day at nine: water",
)  # fmt: skip


async def say_all(world: World) -> None:
    for one in SAID:
        before = len(world.telegram.chats[PERSON])
        world.telegram.say(PERSON, one)
        await world.telegram.wait(
            lambda before=before: len(world.telegram.chats[PERSON]) > before, START
        )


def spoil(world: World, body: bytes) -> list[str]:
    """Damage all documents; return their names."""
    with contextlib.closing(
        sqlite3.connect(world.folder / ".turnkeeper" / "turnkeeper.db")
    ) as store:
        names = [name for (name,) in store.execute("SELECT key FROM directory")]
        store.execute("UPDATE directory SET body = ?", (body,))
        store.commit()
    return names


@pytest.mark.pick("damaged documents", 2)
@pytest.mark.parametrize("body", BODIES)
async def test_a_gateway_starts_with_no_document_that_can_be_read(world: World, body: str) -> None:
    run = await world.start()
    await say_all(world)
    file = world.folder / ".turnkeeper" / "store_id"
    known = file.read_text()
    await run.end()
    assert {"store:id", "secret:web"} <= set(spoil(world, BODIES[body]))
    run = await world.start()
    world.telegram.say(PERSON, "are you there?")
    await world.telegram.wait_text(PERSON, "ack are you there?", START)
    await asyncio.sleep(0.3)  # for what works behind
    assert await run.end() == 0, run.log[-3_000:]
    assert "Traceback" not in run.log, run.log[-3_000:]
    assert "store_replaced" not in run.log and file.read_text() == known
    assert "store_id_spoilt" in run.log
