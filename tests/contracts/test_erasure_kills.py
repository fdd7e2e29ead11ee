"""Erasing a person, killed before and after each commit and given again by another of their
accounts: nothing of them is left, also not in the memory beside ours."""

import asyncio
import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from msgspec.structs import replace

from gateway.conversation.host import Host
from gateway.messages import Inbound
from gateway.ops.stored_contents import make_trail
from gateway.ops.upkeep import StoreUpkeep
from gateway.services.memory import name_space
from gateway.services.memory_removals import MemoryRemovals
from gateway.settings import Settings
from gateway.store import sqlite
from gateway.store.port import Store
from gateway.store.rows import AuditRow, Changes
from gateway.store.sqlite import SqliteStore
from gateway.store.writer import Writer
from tests.contracts.erasure_rig import BOB, GROUP, NONCE, OTHER, SAID, talk
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


class KilledWriter(Writer):
    """Ends its process before or after the `at`-th commit."""

    at, done = 0, 0

    def _commit(self, batch: list) -> list:
        cls = type(self)
        cls.done += 1
        if cls.done == cls.at:
            os.kill(os.getpid(), signal.SIGKILL)
        outcomes = super()._commit(batch)
        cls.done += 1
        if cls.done == cls.at:
            os.kill(os.getpid(), signal.SIGKILL)
        return outcomes


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


async def prepare(home: Path) -> None:
    store = await SqliteStore.open(home / "turnkeeper.db")
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


async def erase(home: Path, account: str, at: int, *, live: bool) -> int:
    """The points of one erasure, which ends its process at `at`, if there are so many."""
    KilledWriter.at = KilledWriter.done = 0
    sqlite.Writer = KilledWriter  # type: ignore[misc]
    store = await SqliteStore.open(home / "turnkeeper.db")
    KilledWriter.at, KilledWriter.done = at, 0
    env = {"TURNKEEPER_HOME": str(home), "MEMORY_PROVIDER": json.dumps(PROVIDER)}
    settings = Settings.read(env, home)
    upkeep = StoreUpkeep(settings, store, make_trail(settings, store), make_host(store, home, live))
    await upkeep.erase(account, lambda text: None)
    await removals(store, home)._work_off()  # as the next start does
    points = KilledWriter.done
    KilledWriter.at = 0
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
    assert [line.what for line in audit].count("allowed") == 9
    named = [line for line in audit if line.where == HOME]
    assert not named, named


def run_life(home: Path, account: str, at: int, live: bool) -> int | None:
    """The points of an erasure in a process of its own, None if it was killed."""

    def work() -> int:
        return asyncio.run(asyncio.wait_for(erase(home, account, at, live=live), PATIENCE))

    done: int | None = run_forked(home, work)
    return done


def look(home: Path, label: str) -> None:
    files = [path for path in home.rglob("*") if path.is_file() and path.suffix != ".txt"]
    left = b"".join(path.read_bytes() for path in files)
    assert NONCE.encode() not in left and SAID.encode() not in left, label
    assert OTHER.encode() in left and b"likes tea" in left, label
    beside = FileMemory(home).read()
    assert sorted(map(tuple, beside.values())) == [(), (), ("tea",)], label


@pytest.mark.timeout(600)
@some_and_every(2, "removals are killed")
def test_killed_at_every_commit_nothing_of_them_is_left(tmp_path: Path, some: int) -> None:
    for live in take((False, True), 1 if some else 2, "erasure kills"):
        home = tmp_path / f"whole-{live}"
        home.mkdir()
        asyncio.run(prepare(home))
        points = run_life(home, "web:ada2", 0, live)
        assert points is not None and points > 30
        look(home, f"whole, {live}")
        for at in spread(points, some, "erasure kills", str(live)):
            home = tmp_path / f"{live}-{at}"
            home.mkdir()
            asyncio.run(prepare(home))
            assert run_life(home, "web:ada2", at, live) is None
            assert run_life(home, "test:ada" if at % 2 else "web:ada2", 0, live)
            look(home, f"killed at {at}, {live}")
