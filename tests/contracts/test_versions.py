"""What an earlier version kept, opened by this one: all of it is there, and goes on. What a newer
one keeps is left alone."""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from redis.asyncio import Redis

from agent_core import ambient
from agent_core.ambient import SystemClock
from gateway.access.pairing import load_people
from gateway.errors import StoreFailed
from gateway.jobs_port import JobStore
from gateway.messages import Conversation
from gateway.ports import account_scope
from gateway.store.jobs.job_stores import make_jobs
from gateway.store.opening import redis_upgrade, sqlite_upgrade
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.sqlite import SqliteStore
from gateway.store.version import LAYOUT
from gateway.views import ApprovalCard
from tests.contracts.redis_server import RedisServer
from tests.fakes.world import ROOM, Life

VERSIONS = sorted(
    path.parent for path in (Path(__file__).parents[1] / "fixtures").glob("*/store.db")
)
START = 1_800_000_000.0


class LaterThatDay(SystemClock):
    """The clock of the day on which the fixtures were made, an hour on."""

    def __init__(self) -> None:
        self._began = super().now()

    def now(self) -> float:
        return START + 3_600.0 + super().now() - self._began


@pytest.fixture(autouse=True)
def day() -> Iterator[None]:
    ambient.use(LaterThatDay())
    yield
    ambient.use(SystemClock())


def place(channel: str) -> str:
    return Conversation(platform="test", account="a", channel=channel, private=True).id


async def restore(url: str, lines: Path) -> None:
    """A Redis as it was."""
    async with Redis.from_url(url) as client:
        await client.flushall()
        for one in map(json.loads, lines.read_text().splitlines()):
            key, value = one["key"], one["value"]
            match one["type"]:
                case "string":
                    await client.set(key, value)
                case "hash":
                    await client.hset(key, mapping=value)
                case "set":
                    await client.sadd(key, *value)
                case "zset":
                    await client.zadd(key, value)
            if one["ttl"] > 0:
                await client.expire(key, one["ttl"])


OpenStore = Callable[[], Awaitable[Store]]


@pytest.fixture(params=VERSIONS, ids=lambda path: path.name)
def version(request: pytest.FixtureRequest) -> Path:
    """A folder of fixtures."""
    assert isinstance(request.param, Path)
    return request.param


@pytest.fixture(params=["sqlite", "redis"])
async def open_old(
    request: pytest.FixtureRequest, version: Path, tmp_path: Path
) -> AsyncIterator[OpenStore]:
    """What opens a store of that version; again it is the same one."""
    if request.param == "sqlite":
        shutil.copy(version / "store.db", tmp_path / "store.db")

        async def open_store() -> Store:
            return await SqliteStore.open(tmp_path / "store.db")
    else:
        server: RedisServer = request.getfixturevalue("server")
        await restore(server.url, version / "redis.jsonl")

        async def open_store() -> Store:
            return await RedisStore.open(server.url)

    yield open_store


async def test_all_of_it_is_there(open_old: OpenStore) -> None:
    for _ in range(2):  # what is brought up once stays so
        store = await open_old()
        try:
            listed = await store.recent(account_scope(ROOM), 20)
            names = {one.conversation for one in listed}
            assert {ROOM.id, place("den"), place("waits")} <= names
            states = {one.conversation: one.state for one in listed}
            assert states[ROOM.id] == "waiting"
            (letter,) = await store.letters(9)
            assert letter.conversation == place("lost")
            assert set(await load_people(store)) == {"test:eve"}
            assert [row.inbound.event for row in await store.arrivals(place("waits"), 0)] == ["m6"]
            assert len(await store.newest(place("den"), 9)) == 1
            assert len(await store.views(ROOM.id, 0, 99)) == 3
            jobs: JobStore = make_jobs(store)
            assert [job.id for job in await jobs.list_jobs()] == ["j1"]
            assert await store.next_due() is None
            assert place("waits") in dict(await store.work("other"))
        finally:
            await store.close()


async def test_what_waits_goes_on(open_old: OpenStore, tmp_path: Path) -> None:
    """The approval is given, what waited is answered, the dead letter too, and a new message."""
    life = Life(tmp_path, lambda _: open_old())
    life.agent._folder = Path()  # the approval is bound to it
    async with life.living():
        store = life.store
        rows = await store.views(ROOM.id, 0, 99)
        (card,) = (row.view for row in rows if isinstance(row.view, ApprovalCard))
        await life.press("p1", card.buttons[0].token)

        def ended() -> bool:
            said = json.dumps([line["view"] for line in life.ledger.all("send")])
            edits = json.dumps([line["view"] for line in life.ledger.all("edit")])
            return "done deploy" in said + edits and "ack waiting" in said + edits

        await life.until(ended)
        assert [line["name"] for line in life.ledger.all("tool")] == ["deploy"]
        await life.until(lambda: "ack cut off" in json.dumps(life.ledger.all("send")))
        (letter,) = await store.letters(9)
        assert await store.resubmit(letter.id) == place("lost")
        life.host.wake(place("lost"))
        await life.until(lambda: "ack nobody" in json.dumps(life.ledger.all("send")))
        await life.say("m9", "and now?")
        await life.until(lambda: "ack and now?" in json.dumps(life.ledger.all("send")))
        await life.quiet()
        assert len(await store.newest(ROOM.id, 9)) == 3


# ---- the number ---------------------------------------------------------------------------------


async def test_a_newer_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE tomorrow(id)")
        db.execute(f"PRAGMA user_version = {LAYOUT + 1}")
    with pytest.raises(StoreFailed, match=f"layout {LAYOUT + 1}.* up to {LAYOUT}; upgrade"):
        await SqliteStore.open(path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("tomorrow",)]


async def test_a_newer_redis_is_refused_and_left_alone(server: RedisServer) -> None:
    async with Redis.from_url(server.url) as client:
        await client.flushall()
        await client.set("tk:version", LAYOUT + 1)
        with pytest.raises(StoreFailed, match=f"layout {LAYOUT + 1}.* up to {LAYOUT}; upgrade"):
            await RedisStore.open(server.url)
        assert await client.keys() == [b"tk:version"]


def test_each_layout_has_its_steps() -> None:
    assert len(sqlite_upgrade.STEPS) == len(redis_upgrade.STEPS) == LAYOUT


class Killed(BaseException):
    """The process ended."""


@pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.name, indirect=True)
async def test_a_step_of_a_file_that_was_cut_off_is_done_again(
    version: Path, tmp_path: Path
) -> None:
    """At each statement."""
    count, cut = 0, True
    while cut:
        count += 1
        path = tmp_path / f"{count}.db"
        shutil.copy(version / "store.db", path)
        left = count

        class Dying(sqlite3.Connection):
            def execute(self, sql: str, *rest: object) -> sqlite3.Cursor:  # type: ignore[override]
                nonlocal left
                left -= 1
                if left == 0:
                    raise Killed
                return super().execute(sql, *rest)  # type: ignore[arg-type]

        db = sqlite3.connect(path, isolation_level=None, factory=Dying)
        super(Dying, db).executescript(
            (Path(sqlite_upgrade.__file__).parents[1] / "schema.sql").read_text()
        )
        try:
            sqlite_upgrade.upgrade(db)
            cut = False
        except Killed:
            left = -1
        db.close()
        store = await SqliteStore.open(path)
        assert {ROOM.id, place("den")} <= {
            one.conversation for one in await store.recent(account_scope(ROOM), 20)
        }
        await store.close()
    assert count > 10


@pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.name, indirect=True)
async def test_replicas_that_bring_up_one_redis_together(
    version: Path, server: RedisServer
) -> None:
    await restore(server.url, version / "redis.jsonl")
    stores = await asyncio.gather(*(RedisStore.open(server.url) for _ in range(3)))
    for store in stores:
        assert len({one.conversation for one in await store.recent(account_scope(ROOM), 20)}) == 5
        await store.close()
    async with Redis.from_url(server.url) as client:
        assert await client.get("tk:version") == str(LAYOUT).encode()
