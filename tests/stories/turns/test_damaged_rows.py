"""One row of any kind and any content that cannot be read: the others go on, the operator sees it."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from gateway.conversation import host
from gateway.delivery import outbox
from gateway.store.redis import RedisStore
from gateway.views import Abilities
from tests.contracts.redis_server import redis_server
from tests.fakes.world import ANN, ROOM, Life

SOON = 8.0
TABLES = ("turns", "records", "questions", "conversations", "outbox", "transcript", "inbox")
BODIES: dict[str, object] = {
    "object": b'{"kind": "of the future"}', "half": b'{"kind"', "bytes": b"\xff\0", "empty": b"",
    "text": "{garbage", "number": 5,
}  # fmt: skip


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "SEND_LIMIT", 0.25)
    monkeypatch.setattr(host, "RETRY_DELAY", 0.1)


@pytest.fixture
async def url(tmp_path: Path) -> AsyncIterator[str]:
    server = redis_server(tmp_path)
    yield server.url
    server.end()


def life(folder: Path, url: str = "") -> Life:
    one = Life(folder, (lambda _: RedisStore.open(url)) if url else None)
    one.adapter.abilities = Abilities(edit_interval=0.02)
    one.ttl = 1.5
    return one


def shown(one: Life, text: str) -> bool:
    return any(text in str(view) for view in one.screen().values())


async def reach(one: Life) -> str:
    """An answered message and a turn that waits for a press; the press's token."""
    await one.say("m1", "hello m1", ANN)
    await one.until(lambda: shown(one, "ack hello m1"))
    await one.say("m2", "do deploy", ANN)
    await one.until(one.cards)
    await one.quiet()
    return str(one.cards()[0].buttons[0].token)


async def go_on(one: Life, token: str) -> None:
    """The conversation answers, and what was set aside can be listed and dropped."""
    await one.press("p1", token)
    await one.say("m3", "hello m3", ANN)
    await one.until(lambda: shown(one, "ack hello m3"), SOON)
    await one.quiet(SOON)
    assert not one.task.done()
    letters = await one.store.letters(50)
    for letter in letters:
        assert await one.store.drop(letter.id)
    assert await one.store.letters(50) == ()


@pytest.mark.pick("a damaged row of a file", 6)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("table", TABLES)
async def test_of_a_file(tmp_path: Path, table: str, body: str) -> None:
    one = life(tmp_path)
    async with one.living():
        token = await reach(one)
        with closing(sqlite3.connect(tmp_path / "store.db")) as c, c:
            c.execute(f"UPDATE {table} SET body = ?", (BODIES[body],))
        await go_on(one, token)


@pytest.mark.pick("a damaged row of a Redis", 3)
@pytest.mark.parametrize("body", ["object", "half", "empty"])
@pytest.mark.parametrize("name", ["turns", "questions", "views", "transcript", "in", "row"])
async def test_of_a_redis(tmp_path: Path, url: str, name: str, body: str) -> None:
    one = life(tmp_path, url)
    async with one.living():
        token = await reach(one)
        store, base = one.store._store, f"tk:{{{ROOM.id}}}"
        if name == "row":
            await store.call(("HSET", base, "row", BODIES[body]))
        else:
            (fields,) = await store.call(("HKEYS", f"{base}:{name}"))
            await store.call(*(("HSET", f"{base}:{name}", one, BODIES[body]) for one in fields))
        await go_on(one, token)


async def test_a_letter_that_cannot_be_read_can_be_dropped(tmp_path: Path) -> None:
    one = life(tmp_path)
    async with one.living():
        token = await reach(one)
        with closing(sqlite3.connect(tmp_path / "store.db")) as c, c:
            c.execute("UPDATE questions SET body = 'x'")
        await one.press("p1", token)
        await one.until(lambda: shown(one, "cannot be read by this version"), SOON)
        await one.quiet()
        (letter,) = await one.store.letters(9)
        with closing(sqlite3.connect(tmp_path / "store.db")) as c, c:
            c.execute("UPDATE letters SET body = '{'")
        (damaged,) = await one.store.letters(9)
        assert damaged.id == letter.id and "unreadable" in damaged.why
        assert await one.store.resubmit(letter.id) is None
        assert await one.store.drop(letter.id)
