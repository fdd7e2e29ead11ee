"""What a conversation's history costs: a message is no dearer for what came before it."""

import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from redis.asyncio import Redis

import gateway.store.sqlite as sqlite
from agent_core.messages import Message, Text, user
from gateway.features.history.past import MAX_TEXT, cut_around
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.rows import Changes, ConversationRow, OutboxRow, TranscriptRow, TurnRow
from gateway.store.spans import append_row, length, without_first, without_last
from gateway.views import ReplyView
from tests.contracts.redis_server import redis_server
from tests.fakes.world import ANN, ROOM, Life

LENGTHS = (310, 400, 1_000, 10_000)
"""The first one fills what is kept at hand and is not compared."""
SEEN = 300
"""Turns that the model sees of a long conversation: it is compressed before they are more."""
Count = Callable[[], Awaitable[int]]


async def lengthen(store: Store, start: int, end: int) -> None:
    """Let the conversation have had `end` turns, of which `start` are there."""
    opened = await store.acquire(ROOM.id, "r1", 30.0)
    assert opened is not None
    for n in range(start, end):
        changes = Changes(turns=(_turn(n),), views=(_view(n),), transcript=(_entry(n),))
        future = store.submit(opened.lease, changes)
    shows = ((max(0, end - SEEN), end),)
    row = ConversationRow(shows=shows, end=end, title="long", position=end, rev=end)
    future = store.submit(opened.lease, Changes(row=row))
    await future
    assert await store.release(opened.lease, opened.last, Changes())


def _entry(n: int) -> TranscriptRow:
    said = (user(f"q{n}"), Message(role="assistant", parts=(Text(text=f"a{n}"),)))
    return TranscriptRow(n=n, turn=f"t{n}", messages=said, person=ANN.key)


def _turn(n: int) -> TurnRow:
    return TurnRow(
        id=f"t{n}", status="done", sender=ANN.key, sender_name="Ann", language="", role="user",
        inbox=(), message="", begun=0.0, code="",
    )  # fmt: skip


def _view(n: int) -> OutboxRow:
    return OutboxRow(
        turn=f"t{n}", name="reply", position=n, version=1, sent=1, view=ReplyView(text=f"a{n}"),
        at=0.0, final=True, rev=n,
    )  # fmt: skip


async def costs(life: Life, count: Count) -> list[int]:
    """What the store does for a message, the least of a few, at each of LENGTHS."""
    found: list[int] = []
    async with life.living():
        there = 0
        for most in LENGTHS:
            await lengthen(life.store, there, most - 1)
            least: list[int] = []
            for n in range(3):
                before = await count()
                await life.say(f"m{most}-{n}", f"hello {most} {n}")
                await life.until(lambda most=most, n=n: f"ack hello {most} {n}" in answers(life))
                await life.quiet()
                least.append(await count() - before)
            found.append(min(least))
            there = most + 2
            opened = await life.store.acquire(ROOM.id, "r1", 30.0)
            assert opened.row.end == there and length(opened.row.shows) == min(SEEN + 3, there)
            await life.store.release(opened.lease, opened.last, Changes())
    return found[1:]


def answers(life: Life) -> list[str]:
    return [view.text for view in life.screen().values() if isinstance(view, ReplyView)]


async def test_the_ten_thousandth_message_costs_what_the_first_of_a_full_history_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = [0]
    plain = sqlite._open

    def counted(path: Path) -> sqlite3.Connection:
        connection = plain(path)

        def traced(sql: str) -> None:
            done[0] += sql not in ("BEGIN IMMEDIATE", "BEGIN", "COMMIT")  # many commits share one

        def row(cursor: sqlite3.Cursor, values: tuple[object, ...]) -> tuple[object, ...]:
            done[0] += 1
            return values

        connection.row_factory = row
        connection.set_trace_callback(traced)
        return connection

    async def count() -> int:
        return done[0]

    monkeypatch.setattr(sqlite, "_open", counted)
    first, *others = await costs(Life(tmp_path), count)
    assert others == [first, first], f"statements and rows: {first}, then {others}"


async def test_so_it_is_in_redis(tmp_path: Path) -> None:
    server = redis_server(tmp_path)
    try:
        async with Redis.from_url(server.url) as client:

            async def count() -> int:
                """Commands, those inside of scripts too."""
                stats = await client.info("commandstats")
                return sum(s["calls"] for name, s in stats.items() if name != "cmdstat_info")

            life = Life(tmp_path, lambda folder: RedisStore.open(server.url))
            first, *others = await costs(life, count)
            assert others == [first, first]
    finally:
        server.end()


def test_spans() -> None:
    assert append_row(append_row((), 3), 4) == ((3, 5),)
    assert append_row(((3, 5),), 7) == ((3, 5), (7, 8))
    assert without_last(((3, 5), (7, 8))) == ((3, 5),)
    assert without_last(((3, 5),)) == ((3, 4),)
    assert without_first(((3, 5), (7, 9)), 3) == ((8, 9),)
    assert length(((3, 5), (7, 9))) == 4


@pytest.mark.parametrize(
    ("text", "words", "held"),
    [
        ("short", "short", ["short"]),
        ("a" * 5_000 + " fox " + "b" * 9_000 + " owl", "owl fox", ["fox", "owl"]),
        ("a" * 20_000, "", ["aaa"]),
        ("fox " * 9_000, "fox", ["fox"]),
    ],
)
def test_what_stands_around_the_words_is_kept(text: str, words: str, held: list[str]) -> None:
    cut = cut_around(text, words)
    assert len(cut) <= MAX_TEXT and all(one in cut for one in held)
