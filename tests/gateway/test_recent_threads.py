"""What the model sees of a conversation is read once, and again whenever somebody else had it."""

from pathlib import Path

import pytest

from agent_core.context.surroundings import strip_surroundings
from agent_core.messages import Message, user
from agent_core.orchestration.brief import Brief, Hands, TurnResult
from agent_core.scope import Scope
from gateway.services import recent_threads
from gateway.services.recent_threads import RecentThread, RecentThreads
from gateway.store.port import Store
from gateway.store.rows import Changes, ConversationRow, Lease, Spans, Thread, TranscriptRow
from gateway.store.spans import append_row
from gateway.store.sqlite import SqliteStore
from tests.fakes.world import ROOM, Life, ScriptedAgent


async def talk(life: Life, *words: str) -> None:
    for word in words:
        await life.say(word, word)
        await life.until(lambda word=word: f"ack {word}" in map(str, texts(life)))
        await life.quiet()


def texts(life: Life) -> list[str]:
    return [getattr(view, "text", "") for view in life.screen().values()]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Spans]:
    """The spans of the thread that were read, but those of nothing."""
    asked: list[Spans] = []
    plain = SqliteStore.thread

    async def read(store: SqliteStore, conversation: str, spans: Spans) -> Thread:
        asked.extend([spans] if spans else [])
        return await plain(store, conversation, spans)

    monkeypatch.setattr(SqliteStore, "thread", read)
    return asked


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was said before, as the last turn saw it."""
    texts: list[str] = []
    plain = ScriptedAgent.code

    async def code(
        agent: ScriptedAgent,
        scope: Scope,
        brief: Brief,
        hands: Hands,
        history: tuple[Message, ...],
        past: tuple[Message, ...],
    ) -> TurnResult:
        parts = [part for message in history for part in message.parts]
        texts[:] = [strip_surroundings(part.text) for part in parts]
        return await plain(agent, scope, brief, hands, history, past)

    monkeypatch.setattr(ScriptedAgent, "code", code)
    return texts


async def test_the_next_message_reads_nothing(
    tmp_path: Path, reads: list[Spans], seen: list[str]
) -> None:
    life = Life(tmp_path)
    async with life.living():
        await talk(life, "one", "two", "three")
        assert seen == ["one", "ack one", "two", "ack two"]
    assert reads == []
    async with life.living():
        await talk(life, "four")
        assert seen[-2:] == ["three", "ack three"]
    assert reads == [((0, 3),)]


async def test_what_somebody_else_wrote_meanwhile_is_read(
    tmp_path: Path, reads: list[Spans], seen: list[str]
) -> None:
    life = Life(tmp_path)
    async with life.living():
        await talk(life, "one")
        await add(life.store, user("by another"))
        await talk(life, "two")
        assert seen == ["one", "ack one", "by another"]
        await take_and_release(life.store)  # nothing was written, but it could have been
        await talk(life, "three")
        assert seen[-2:] == ["two", "ack two"]
    assert len(reads) == 2


async def test_what_is_erased_is_not_held(tmp_path: Path, reads: list[Spans]) -> None:
    life = Life(tmp_path)
    async with life.living():
        await talk(life, "one")
        async with life.host.keep_closed(ROOM.id):
            pass
        await talk(life, "two")
    assert len(reads) == 1


async def add(store: Store, message: Message) -> None:
    """Put a message into the transcript, as a holder of the conversation does."""
    opened = await store.acquire(ROOM.id, "r1", 30.0)
    assert opened is not None
    row = opened.row
    entry = TranscriptRow(n=row.end, turn="", messages=(message,))
    grown = ConversationRow(shows=append_row(row.shows, row.end), end=row.end + 1, title=row.title)
    changes = Changes(transcript=(entry,), row=grown)
    assert await store.release(opened.lease, opened.last, changes)


async def take_and_release(store: Store) -> None:
    opened = await store.acquire(ROOM.id, "r1", 30.0)
    assert opened is not None
    assert await store.release(opened.lease, opened.last, Changes())


def thread(token: int, characters: int = 5, end: int = 1) -> RecentThread:
    return RecentThread(token, ConversationRow(end=end), [(user("hello"),)], characters)


def lease(name: str, token: int) -> Lease:
    return Lease(conversation=name, owner="r1", token=token)


def test_a_thread_is_good_for_the_next_lease_and_the_same_row_alone() -> None:
    threads = RecentThreads()
    for token, end, good in ((2, 1, True), (3, 1, False), (1, 1, False), (2, 2, False)):
        threads.keep("a", thread(1))
        taken = threads.take(lease("a", token), ConversationRow(end=end))
        assert (taken is not None) == good
        assert threads.take(lease("a", 2), ConversationRow(end=1)) is None, "it is taken once"


def test_the_oldest_go_when_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_threads, "MAX_THREADS", 2)
    threads = RecentThreads()
    for name in "abc":
        threads.keep(name, thread(1))
    held = [name for name in "abc" if threads.take(lease(name, 2), ConversationRow(end=1))]
    assert held == ["b", "c"]


def test_the_oldest_go_when_they_are_too_long_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_threads, "MAX_RECENT", 10)
    threads = RecentThreads()
    for name in "abc":
        threads.keep(name, thread(1))
    threads.keep("huge", thread(1, 11))
    held = [n for n in ("a", "b", "c", "huge") if threads.take(lease(n, 2), ConversationRow(end=1))]
    assert held == []
    for name in "abc":
        threads.keep(name, thread(1))
    held = [name for name in "abc" if threads.take(lease(name, 2), ConversationRow(end=1))]
    assert held == ["b", "c"]
