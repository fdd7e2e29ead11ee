"""Erasing a person, killed before and after each commit (in Redis: before each trip that writes) and
given again by another of their accounts: nothing of them is left, also not in the memory beside ours."""

import asyncio
import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import redis
from msgspec.structs import replace

from gateway.conversation.host import Host
from gateway.messages import Inbound
from gateway.ops.stored_contents import make_trail
from gateway.ops.upkeep import StoreUpkeep
from gateway.services.memory import name_space
from gateway.services.memory_removals import MemoryRemovals
from gateway.settings import Settings
from gateway.store import redis_wire, sqlite
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.rows import AuditRow, Changes
from gateway.store.sqlite import SqliteStore
from gateway.store.sqlite_threads import Writer
from tests.contracts.erasure_rig import BOB, GROUP, NONCE, OTHER, SAID, talk
from tests.contracts.redis_server import RedisServer, redis_server
from tests.contracts.store_values import START, place
from tests.fakes.lives import run_forked
from tests.fakes.waiting import PATIENCE
from tests.sampling import some_and_every, spread, take

PROVIDER = {
    "server": "mem",
    "recall": {"tool": "search", "arguments": {}},
    "add": {"tool": "add", "arguments": {}},
    "remove": {"tool": "remove", "arguments": {}},
}
HOME = replace(place("home"), private=True).id
ADA1, ADA2 = "memory:own:test:ada", "memory:own:web:ada2"


class Kills:
    """Ends the process at the `at`-th point."""

    at, done = 0, 0

    @classmethod
    def pass_point(cls) -> None:
        cls.done += 1
        if cls.done == cls.at:
            os.kill(os.getpid(), signal.SIGKILL)


class KilledWriter(Writer):
    """Its commits are points, before and after."""

    def _commit(self, batch: list) -> list:
        Kills.pass_point()
        outcomes = super()._commit(batch)
        Kills.pass_point()
        return outcomes


class OnSqlite:
    """A file in the folder."""

    name = "sqlite"

    async def open(self, home: Path) -> Store:
        sqlite.Writer = KilledWriter  # type: ignore[misc]
        return await SqliteStore.open(home / "turnkeeper.db")

    def clear(self) -> None:
        """Each folder has its own."""

    def read(self) -> bytes:
        return b""


READS = frozenset(
    ("GET", "HGET", "HMGET", "HGETALL", "HSCAN", "HRANDFIELD", "EXISTS", "SCAN", "ZRANGE", "ZSCORE")
)


class OnRedis:
    """A server that outlives the processes."""

    name = "redis"

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        with redis.Redis.from_url(server.url) as client:  # nobody reads what it would write
            client.config_set("loglevel", "warning")

    async def open(self, home: Path) -> Store:
        talk_to = redis_wire.RedisWire._pipe

        async def pipe(self: Any, commands: Sequence[Any]) -> Any:
            if any(str(command[0]) not in READS for command in commands):
                Kills.pass_point()  # what comes after one trip comes before the next
            return await talk_to(self, commands)

        if talk_to.__name__ != "pipe":
            redis_wire.RedisWire._pipe = pipe  # type: ignore[method-assign]
        return await RedisStore.open(self._server.url, without_log=True)

    def clear(self) -> None:
        with redis.Redis.from_url(self._server.url) as client:
            client.flushall()

    def read(self) -> bytes:
        found = b""
        with redis.Redis.from_url(self._server.url) as client:
            for name in client.scan_iter():
                found += name + (client.dump(name) or b"")
                if client.type(name) == b"hash":
                    found += b"".join(b"".join(pair) for pair in client.hgetall(name).items())
                elif client.type(name) == b"zset":
                    found += b"".join(client.zrange(name, 0, -1))
                elif client.type(name) == b"string":
                    found += client.get(name) or b""
        return found


Kept = OnSqlite | OnRedis


class FileMemory:
    """A memory of somebody else: a set of entries by space, in a file."""

    name, forgets, clears = "mem", True, False

    def __init__(self, folder: Path) -> None:
        self._file = folder / "beside.json"

    def read(self) -> dict[str, list[str]]:
        return cast("dict[str, list[str]]", json.loads(self._file.read_text()))

    def write(self, entries: dict[str, list[str]]) -> None:
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps(entries))
        part.replace(self._file)

    async def recall(self, space: str, words: str) -> str:
        return ""

    async def add(self, space: str, text: str) -> None:
        raise AssertionError("nobody remembers anything")

    async def forget(self, space: str, text: str) -> None:
        entries = self.read()
        entries[space] = [one for one in entries.get(space, []) if one != text]
        self.write(entries)

    async def clear(self, space: str) -> None:
        raise AssertionError("it says that it cannot")


async def prepare(kept: Kept, home: Path) -> None:
    kept.clear()
    store = await kept.open(home)
    await talk(store, home)
    opened = await store.acquire(GROUP.id, "me", 30)
    assert opened is not None
    lines = (
        AuditRow(at=START + 9, who=BOB.key, what="allowed", where=GROUP.id, detail=f"for {SAID}"),
        AuditRow(at=START + 9, who=BOB.key, what="allowed", where=HOME, detail="in her chat"),
    )
    await store.submit(opened.lease, Changes(audit=lines))
    await store.give_back(opened.lease)
    await store.close()
    bobs = name_space("memory:own:test:bob")
    FileMemory(home).write({**{name_space(one): [NONCE] for one in (ADA1, ADA2)}, bobs: ["tea"]})


async def erase(kept: Kept, home: Path, account: str, at: int, *, live: bool) -> int:
    """The points of one erasure, which ends its process at `at`, if there are so many."""
    Kills.at = Kills.done = 0
    store = await kept.open(home)
    Kills.at, Kills.done = at, 0
    env = {"TURNKEEPER_HOME": str(home), "MEMORY_PROVIDER": json.dumps(PROVIDER)}
    settings = Settings.read(env, home)
    upkeep = StoreUpkeep(settings, store, make_trail(settings, store), make_host(store, home, live))
    await upkeep.erase(account, lambda text: None)
    await removals(store, home)._work_off()  # as the next start does
    points = Kills.done
    Kills.at = 0
    await check(store)
    await store.close()
    return points


def removals(store: Store, home: Path) -> MemoryRemovals:
    async def deliver(inbounds: Sequence[Inbound]) -> None:
        raise AssertionError("the person is gone")

    return MemoryRemovals(store, FileMemory(home), deliver)


def make_host(store: Store, home: Path, live: bool) -> Host | None:
    """What an erasure asks of a gateway that runs."""
    memory = SimpleNamespace(removals=removals(store, home))
    made = SimpleNamespace(services=SimpleNamespace(memory=memory), keep_closed=keep_closed)
    return cast(Host, made) if live else None


class keep_closed:
    """No session is there to be kept away."""

    def __init__(self, conversation: str) -> None: ...

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *error: object) -> None: ...


async def check(store: Store) -> None:
    kept = {key for key in await store.keys("") if not key.startswith("audit-")}
    assert kept <= {"memory:own:test:bob", "retention:since"}, kept
    audit = await store.audit(30)
    assert [line.what for line in audit].count("allowed") == 14
    named = [line for line in audit if line.where == HOME]
    assert not named, named


def run_life(kept: Kept, home: Path, account: str, at: int, live: bool) -> int | None:
    """The points of an erasure in a process of its own, None if it was killed."""

    def work() -> int:
        erasing = erase(kept, home, account, at, live=live)
        return asyncio.run(asyncio.wait_for(erasing, PATIENCE))

    done: int | None = run_forked(home, work)
    return done


def begin(kept: Kept, home: Path) -> None:
    """A new world, made by a process of its own."""
    home.mkdir()
    run_forked(home, lambda: asyncio.run(prepare(kept, home)))


def look(kept: Kept, home: Path, label: str) -> None:
    files = [path for path in home.rglob("*") if path.is_file() and path.suffix != ".txt"]
    left = b"".join(path.read_bytes() for path in files) + kept.read()
    assert NONCE.encode() not in left and SAID.encode() not in left, label
    assert OTHER.encode() in left and b"likes tea" in left, label
    beside = FileMemory(home).read()
    assert sorted(map(tuple, beside.values())) == [(), (), ("tea",)], label


def kill_everywhere(kept: Kept, folder: Path, some: int) -> None:
    both = not some and isinstance(kept, OnSqlite)  # a server that is emptied takes its time
    for live in take((False, True), 1 + both, "erasure kills", kept.name):
        home = folder / f"whole-{live}"
        begin(kept, home)
        points = run_life(kept, home, "web:ada2", 0, live)
        assert points is not None and points > 30
        look(kept, home, f"whole, {live}")
        for at in spread(points, some, "erasure kills", kept.name, str(live)):
            home = folder / f"{live}-{at}"
            begin(kept, home)
            assert run_life(kept, home, "web:ada2", at, live) is None
            assert run_life(kept, home, "test:ada" if at % 2 else "web:ada2", 0, live)
            look(kept, home, f"killed at {at}, {live}")


@pytest.mark.timeout(600)
@some_and_every(2, "removals are killed")
def test_killed_at_every_commit_nothing_of_them_is_left(tmp_path: Path, some: int) -> None:
    kill_everywhere(OnSqlite(), tmp_path, some)


@pytest.mark.timeout(900)
@some_and_every(2, "removals are killed")
def test_killed_at_every_trip_to_redis_nothing_of_them_is_left(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, some: int
) -> None:
    server = redis_server(tmp_path_factory.mktemp("redis"), "--appendonly", "no")  # it lives on
    try:
        kill_everywhere(OnRedis(server), tmp_path, some)
    finally:
        server.end()
