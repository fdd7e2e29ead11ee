"""A file of the version before there were lists is brought up to date when it is opened."""

import sqlite3
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from redis.asyncio import Redis

from gateway.messages import Sender
from gateway.ports import account_scope, channel_scope, person_scope
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.rows import Changes, ConversationRow
from gateway.store.sqlite import SqliteStore
from tests.contracts.conftest import RedisWorld
from tests.contracts.store_values import START, lines, place, said, spoken, take, turn, view

ANN = Sender(platform="test", id="ann")
PRIVATE = {name: replace(place(name), private=True) for name in ("talked", "parked", "waits")}


async def live(store: Store) -> None:
    """A group, and private conversations of which different rows tell whose they are."""
    await store.accept([replace(said(1), sender=ANN)])
    for n, where in enumerate(PRIVATE.values()):
        await store.accept([replace(said(10 + n), conversation=where, sender=ANN)])
    talked = await store.acquire(PRIVATE["talked"].id, "me", 30)
    parked = await store.acquire(PRIVATE["parked"].id, "me", 30)
    assert talked is not None and parked is not None
    rows = tuple(replace(spoken(n), person=ANN.key) for n in range(3))
    row = ConversationRow(shows=((0, 3),), end=3, title="Trip")
    done = tuple(one.seq for one in talked.inbox)
    await store.submit(talked.lease, Changes(transcript=rows, row=row, done=done))
    asked = replace(turn("t1", "parked"), sender=ANN.key)
    done = tuple(one.seq for one in parked.inbox)
    await store.submit(parked.lease, Changes(turns=(asked,), views=(view("a", 1),), done=done))
    await store.put("person:1", b"x")


async def look(store: Store) -> None:
    """All of it is found by its lists, and the thread by its rows."""
    own = await store.recent(person_scope(ANN.key), 10)
    assert {one.conversation for one in own} == {where.id for where in PRIVATE.values()}
    assert "Trip" in {one.title for one in own}
    assert [one.conversation for one in await store.recent(channel_scope(place()), 9)] == [
        place().id
    ]
    assert len(await store.recent(account_scope(place()), 10)) == 4
    assert await store.thread(PRIVATE["talked"].id, ((0, 3),)) == (lines(0), lines(1), lines(2))
    assert await store.keys("person:") == ("person:1",)
    again = PRIVATE["talked"]
    await store.accept([replace(said("new"), conversation=again, sender=ANN)])
    assert (await store.recent(person_scope(ANN.key), 1))[0].conversation == again.id


@pytest.fixture
def old_schema() -> str:
    """The tables of that version, as far as they were others."""
    return """
    CREATE TABLE conversations(
      id TEXT PRIMARY KEY, token INTEGER NOT NULL DEFAULT 0, owner TEXT,
      expires REAL NOT NULL DEFAULT 0, seen INTEGER NOT NULL DEFAULT 0,
      last INTEGER NOT NULL DEFAULT 0, work INTEGER NOT NULL DEFAULT 0,
      at REAL NOT NULL DEFAULT 0, body BLOB
    ) WITHOUT ROWID;
    CREATE TABLE threads(conversation TEXT PRIMARY KEY, body BLOB NOT NULL);
    """


async def test_a_file(tmp_path: Path, old_schema: str) -> None:
    path = tmp_path / "new.db"
    store = await SqliteStore.open(path)
    await live(store)
    await store.close()
    old = sqlite3.connect(path)
    kept = "id, token, owner, expires, seen, last, work, at, body"
    rows = old.execute(f"SELECT {kept} FROM conversations").fetchall()
    old.executescript("DROP TABLE lists; DROP TABLE conversations; DROP INDEX outbox_position;")
    old.executescript(old_schema)
    old.execute("PRAGMA user_version = 0")
    old.executemany("INSERT INTO conversations VALUES(?,?,?,?,?,?,?,?,?)", rows)
    body = msgspec.json.encode((lines(7),))
    old.execute("INSERT INTO threads VALUES(?, ?)", (PRIVATE["talked"].id, body))
    old.commit()
    old.close()
    store = await SqliteStore.open(path)
    await look(store)
    await store.close()
    await (await SqliteStore.open(path)).close()


async def test_a_redis(redis_world: RedisWorld) -> None:
    await live(redis_world.store)
    talked = f"tk:{{{PRIVATE['talked'].id}}}"
    async with Redis.from_url(redis_world.server.url) as client:
        lists = [key async for key in client.scan_iter("tk:l*")]
        await client.delete(*lists, "tk:{directory}:names", "tk:version")
        for where in PRIVATE.values():
            await client.hdel(f"tk:{{{where.id}}}", "person")
        await client.set(f"{talked}:thread", msgspec.json.encode((lines(7),)))
        await redis_world.restart()
        redis_world.clock.time += 1
        await look(redis_world.store)
        lease = await take(await _other(redis_world), "c9")
        assert lease.token == 1
        assert float(await client.zscore("tk:conversations", place().id) or 0) == START


async def _other(world: RedisWorld) -> RedisStore:
    replica = await world.replica()
    assert isinstance(replica, RedisStore)
    return replica
