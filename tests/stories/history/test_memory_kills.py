"""Killed at every point: a turn that stores something and one that forgets it. And turns of two
conversations that store at once, on both stores."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import redis
from msgspec.structs import replace

from agent_core.memory.documents import Change, MemoryDocuments
from agent_core.memory.recall import HEAD
from agent_core.memory.settings import MemorySettings
from gateway.messages import Conversation
from gateway.services.memory import ConversationMemory, Memories
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.sqlite import SqliteStore
from gateway.views import Notice
from tests.contracts.redis_server import redis_server
from tests.fakes.lives import count_points, killed_at
from tests.fakes.world import ANN, ROOM, Ledger, Life
from tests.sampling import some_and_every, spread
from tests.stories.kills_rig import assert_clean
from tests.stories.memory_lives_rig import (
    FALCON,
    TEA,
    PointedDirectory,
    RememberingAgent,
    alone,
    keep_and_forget,
)


def remembering(life: Life) -> None:
    life.agent = RememberingAgent(life)
    life.agent.memories = Memories(PointedDirectory(life), MemorySettings(), alone)


async def story(life: Life) -> None:
    await keep_and_forget(life)
    await assert_clean(life, 2)
    shelf = life.agent.memories.open_for(ROOM, ANN.key, lambda: False)
    assert await shelf.read() == MemoryDocuments()


def look(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    stood = [json.loads(line["body"]) for line in ledger.all("put") if line["stood"]]
    keys = [one["done"][-1] for one in stood]
    assert len(keys) <= 4, f"{label}: each change is written once: {keys}"
    for one in stood:
        entries = (*one.get("memory", ()), *one.get("user", ()))
        assert len(set(entries)) == len(entries), f"{label}: {stood}"
    screen = ledger.read_screen()
    told = Counter(v.text for v in screen.values() if isinstance(v, Notice))
    plain = Counter({text: n for text, n in told.items() if "twice" not in text})
    assert all(n == 1 for n in plain.values()), f"{label}: {told}"
    assert "Nothing that is remembered" not in "".join(told), f"{label}: {told}"
    assert len(told) - len(plain) <= 1, f"{label}: one at most was sent in doubt: {told}"
    for words in (f"Remembered: {TEA}", f"Remembered: {FALCON}", f"Forgotten: {TEA}"):
        assert any(text.startswith(words) for text in told), f"{label}: {told}"
    (block,) = {line["text"] for line in ledger.all("read") if HEAD in line["text"]}
    assert TEA in block and FALCON in block, f"{label}: at the second turn's start: {block}"


@pytest.mark.timeout(240)
@some_and_every()
def test_killed_at_every_point_it_is_stored_once(some: int) -> None:
    points = count_points(story, remembering)
    assert points["names"].count("put") == 4, points
    near = {n for n, name in enumerate(points["names"], 1) if name.startswith("put")}
    chosen = sorted({*spread(points["count"], some, "memory"), *near})
    killed = 0
    for k in chosen:
        label = f"killed at {k} ({points['names'][k - 1]})"
        killed += killed_at([{k}], story, look, label, remembering)
    assert killed >= len(chosen) * 0.9


class Meeting(PointedDirectory):
    """The first write waits until another one is on its way."""

    def __init__(self, life: Life) -> None:
        super().__init__(life)
        self._writers = 0
        self._second = asyncio.Event()

    async def put(self, key: str, body: bytes | None, expected: bytes | None = None) -> bool:
        self._writers += 1
        if self._writers > 1:
            self._second.set()
        await self._second.wait()
        return await super().put(key, body, expected)


async def test_turns_of_two_conversations_store_at_once(tmp_path: Path) -> None:
    life, other = Life(tmp_path), replace(ROOM, channel="other room")
    remembering(life)
    life.agent.memories = Memories(Meeting(life), MemorySettings(), alone)
    async with life.living():
        await life.say("m1", "keep")
        await life.say("m2", "name", where=other)
        await life.quiet()
        assert {line["stood"] for line in life.ledger.all("put")} == {True, False}, "they met"
        for where in (ROOM, other):
            known = await life.agent.memories.open_for(where, ANN.key, lambda: False).read()
            assert known == MemoryDocuments(memory=(FALCON,), user=(TEA,))


# ---- both stores -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = redis_server(tmp_path_factory.mktemp("redis"))
    yield server.url
    server.end()


@pytest.fixture(params=["sqlite", "redis"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    if request.param == "redis":
        url = request.getfixturevalue("redis_url")
        client = redis.Redis.from_url(url)
        client.flushall()
        client.close()
        made: Store = await RedisStore.open(url)
    else:
        made = await SqliteStore.open(tmp_path / "store.db")
    yield made
    await made.close()


def shelf_at(store: Store, where: Conversation, account: str = ANN.key) -> ConversationMemory:
    async def both(account: str) -> frozenset[str]:
        return frozenset({account, "other:ann"})

    return Memories(store, MemorySettings(), both).open_for(where, account, lambda: False)


async def test_two_conversations_of_a_person_store_at_once_and_both_are_kept(store: Store) -> None:
    others = replace(ROOM, channel="other room")
    shelves = [shelf_at(store, ROOM), shelf_at(store, others)]
    async with asyncio.TaskGroup() as group:
        for n in range(20):
            change = Change(action="add", target="user", text=f"fact {n}")
            group.create_task(shelves[n % 2].apply(change, f"key-{n}"))
            group.create_task(shelves[n % 2].apply(change, f"key-{n}"))
    known = await shelves[0].read()
    assert sorted(known.user) == sorted(f"fact {n}" for n in range(20))


async def test_a_change_that_was_taken_back_meanwhile_is_not_made_again(store: Store) -> None:
    shelf = shelf_at(store, ROOM)
    change = Change(action="add", target="user", text="fact")
    first = await shelf.apply(change, "a")
    await shelf.apply(Change(action="remove", target="user", old="fact"), "b")
    assert await shelf.apply(change, "a") == first
    assert (await shelf.read()).user == ()
    await shelf.apply(change, "c")
    await shelf.clear("d")
    await shelf.apply(change, "e")
    await shelf.clear("d")
    assert (await shelf.read()).user == ("fact",)


async def test_the_shelf_itself_keeps_to_its_place(store: Store) -> None:
    """Whatever the tool lets through: off is off, a group has no USER.md, nobody has nothing."""
    about = Change(action="add", target="user", text="fact")
    group = replace(ROOM, private=False)
    assert "In a group" in (await shelf_at(store, group).change(about, "a")).text
    off = Memories(store, MemorySettings(), alone).open_for(ROOM, ANN.key, lambda: True)
    assert "switched off" in (await off.change(about, "b")).text
    nobody = shelf_at(store, ROOM, ":")
    assert "nobody to remember it for" in (await nobody.change(about, "c")).text
    assert await nobody.read() == await off.read() == MemoryDocuments()
    assert await store.keys("memory:") == ()
    topic = replace(group, thread="7", person="bob")
    await shelf_at(store, topic).change(replace(about, target="memory"), "d")
    assert (await shelf_at(store, group).read()).memory == ("fact",), "one for all its threads"
    assert await store.keys("memory:") == (f"memory:chat:{group.id}",)
    await shelf_at(store, ROOM).change(replace(about, text="mine"), "e")
    assert (await shelf_at(store, group).read()).user == ()


async def test_what_linked_accounts_told_is_one_document_with_one_limit(store: Store) -> None:
    one, other = shelf_at(store, ROOM), shelf_at(store, ROOM, "other:ann")
    await other.apply(Change(action="add", target="user", text="x" * 1_000), "a")
    refused = await one.apply(Change(action="add", target="user", text="y" * 900), "b")
    assert "is full" in refused.text and not refused.shown
    change = Change(action="replace", target="user", old="xx", text="short")
    assert (await one.apply(change, "c")).shown == "short"
    assert (await other.read()).user == ("short",)
    assert await store.get(f"memory:own:{ANN.key}") is None, "it stays with who told it"
