"""What a call of a store costs does not depend on how many conversations there are, nor on how much
was said in one: counted in statements, rows and commands, never in time."""

import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from redis.asyncio import Redis

import gateway.store.sqlite as sqlite
from agent_core import ambient
from gateway.messages import Sender
from gateway.ports import account_scope, person_scope
from gateway.store.port import Store
from gateway.store.rows import Changes, ConversationRow
from gateway.store.spending.expenses import Expense
from gateway.store.sqlite import SqliteStore
from gateway.store.sqlite_sweep import ROWS
from tests.contracts.conftest import RedisWorld
from tests.contracts.store_values import (
    DAY,
    START,
    ManualClock,
    place,
    question,
    record,
    said,
    spoken,
    take,
    turn,
    view,
)

FEW, MANY = 30, 600
NOISE = 2
"""Hundreds of steps by which one plan differs from time to time."""
TODAY = "2027-01-15"
Count = Callable[[], Awaitable[int]]
ANN = Sender(platform="test", id="ann")


async def fill(store: Store, first: int, last: int) -> None:
    """Conversations that had a turn each, and one more turn in the first of them."""
    for n in range(first, last):
        where = replace(place(f"r{n}"), private=True)
        sender = Sender(platform="test", id=f"p{n % 7}")
        (kept,) = await store.accept([replace(said(n), conversation=where, sender=sender)])
        opened = await store.acquire(where.id, "me", 30)
        assert opened is not None
        name = f"t{n}"
        ended = replace(turn(name, "done"), sender=sender.key)
        shown = replace(view("reply", 1), turn=name)
        entry = replace(spoken(0), turn=name, person=sender.key)
        changes = Changes(
            turns=(ended,), records=(record(0, name),), views=(shown,), transcript=(entry,),
            row=ConversationRow(shows=((0, 1),), end=1, title=name), done=(kept.seq,),
        )  # fmt: skip
        assert await store.release(opened.lease, kept.seq, changes)
        await store.put(f"memory:own:test:p{n}", b"x")
        await store.spend(TODAY, (Expense(account=f"person:{n}", amount=1),))
    lease = await take(store)
    for n in range(first, last):
        changes = Changes(views=(view(f"v{n}", n + 1),), transcript=(spoken(n),))
        await store.submit(lease, changes)
    await store.give_back(lease)


async def costs(store: Store, count: Count, number: int) -> dict[str, int]:
    """What each call costs now; `number` tells the rounds apart."""
    where = place("measured")
    found: dict[str, int] = {}

    async def measure(name: str, call: Callable[[], Awaitable[object]]) -> None:
        before = await count()
        await call()
        found[name] = await count() - before

    await store.accept([said(f"{number}-0", where.channel)])  # and now it is the newest
    await measure("accept", lambda: store.accept([said(f"{number}-1", where.channel)]))
    await measure("accept elsewhere", lambda: store.accept([said(f"{number}-2", "aside")]))
    lease = await take(store, where.channel)
    name = f"m{number}"
    changes = Changes(turns=(turn(name),), records=(record(0, name),), questions=(question(name),))
    await measure("commit", lambda: store.submit(lease, changes))
    ended = Changes(turns=(turn(name, "done"),), questions=(question(name, status="answered"),))
    await measure("release", lambda: store.release(lease, 10**9, ended))
    await measure("acquire", lambda: store.acquire(place().id, "me", 1))
    await store.give_back(await take(store))
    await measure("recent", lambda: store.recent(account_scope(where), 5))
    await measure("recent of a person", lambda: store.recent(person_scope("test:p3"), 3))
    await measure("search", lambda: store.recent(person_scope("test:p3"), 3, "none-such"))
    await measure("summary", lambda: store.summary(where.id))
    await measure("latest", lambda: store.latest(place().id, 5))
    await measure("views", lambda: store.views(place().id, 3, 5))
    await measure("newest", lambda: store.newest(place().id, 5))
    await measure("thread", lambda: store.thread(place().id, ((3, 8),)))
    await measure("outbox", lambda: store.outbox(place().id, name))
    await measure("turn", lambda: store.turn("t1"))
    await measure("locate", lambda: store.locate("t1"))
    await measure("records", lambda: store.records("t1"))
    await measure("find", lambda: store.find(name))
    await measure("due", lambda: store.due(START, 5))
    await measure("next due", store.next_due)
    await measure("letters", lambda: store.letters(5))
    await measure("audit", lambda: store.audit(5))
    await measure("keys", lambda: store.keys("memory:own:test:p1"))
    expense = Expense(account="person:1", amount=1, limit=10**9)
    await measure("spend", lambda: store.spend(TODAY, (expense,)))
    await measure("spent", lambda: store.read_spent(TODAY, ("all", "person:1")))
    await measure("sweep", lambda: store.sweep(START))
    del found["search"]  # it looks through what there is, up to a limit
    return found


async def grown(store: Store, count: Count) -> None:
    await fill(store, 0, FEW)
    await costs(store, count, 0)  # fills what is kept at hand
    few = await costs(store, count, 1)
    await fill(store, FEW, MANY)
    many = await costs(store, count, 2)
    few.pop("keys"), many.pop("keys")  # these give what there is
    assert {name: (few[name], many[name]) for name in few if many[name] > few[name] + NOISE} == {}


async def test_in_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = [0]
    plain = sqlite._open

    def counted(path: Path, patience: float = 10.0) -> sqlite3.Connection:
        connection = plain(path, patience)

        def row(cursor: sqlite3.Cursor, values: tuple[object, ...]) -> tuple[object, ...]:
            done[0] += 1
            return values

        def step() -> int:
            done[0] += 1
            return 0

        connection.row_factory = row
        connection.set_progress_handler(step, 500)  # steps of SQLite's machine: walks show
        return connection

    async def count() -> int:
        return done[0]

    monkeypatch.setattr(sqlite, "_open", counted)
    ambient.use(ManualClock())
    store = await SqliteStore.open(tmp_path / "store.db")
    try:
        await grown(store, count)
    finally:
        await store.close()
        ambient.use(ambient.SystemClock())


async def test_in_redis(redis_world: RedisWorld) -> None:
    async with Redis.from_url(redis_world.server.url) as client:

        async def count() -> int:
            """Commands, those inside of scripts too."""
            stats = await client.info("commandstats")
            return sum(one["calls"] for name, one in stats.items() if name != "cmdstat_info")

        await grown(redis_world.store, count)


async def test_a_sweep_is_done_in_pieces_and_to_its_end(tmp_path: Path) -> None:
    clock = ManualClock()
    ambient.use(clock)
    store = await SqliteStore.open(tmp_path / "store.db")
    try:
        rows = 3 * ROWS + 7
        waiting, *done = await store.accept([said(n) for n in range(rows)])
        lease = await take(store)
        turns = tuple(turn(f"t{n}", "done") for n in range(ROWS + 5))
        records = tuple(record(n, one.id) for one in turns for n in range(2))
        changes = Changes(done=tuple(one.seq for one in done), turns=turns, records=records)
        await store.submit(lease, changes)
        clock.time += 31 * DAY
        await store.accept([said("young")])
        before = store.commits
        assert await store.sweep(clock.time) == len(done) + len(records)
        assert store.commits - before >= 4, "others may write in between"
        assert [row.seq for row in await store.arrivals(place().id, 0)][0] == waiting.seq
        assert await store.records("t0") == ()
        assert await store.sweep(clock.time) == 0
        await store.submit(lease, Changes(done=(waiting.seq,)))
        assert await store.sweep(clock.time) == 1, "what was passed is seen once it is done"
    finally:
        await store.close()
        ambient.use(ambient.SystemClock())
