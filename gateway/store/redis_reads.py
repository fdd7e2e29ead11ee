"""Reads from Redis besides a new lease's `AcquiredConversation`, on a connection of its own, so
that a long journal never delays a commit.

Indexes name more than exists; each name is checked.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import aclosing, closing
from typing import Any, TypeVar, cast

import hiredis
import msgspec
from redis import Redis as BlockingRedis
from redis.exceptions import RedisError

from agent_core import ambient
from agent_core.journal import Record
from gateway.errors import StoreFailed
from gateway.messages import Inbound
from gateway.ports import ListScope, Shown, Summary, parse_words
from gateway.store import search
from gateway.store.dead_letters import encode_letter, read_each, read_letter
from gateway.store.reading import read_record, read_row, readable
from gateway.store.redis_lease import AUDIT, DEAD, DIRECTORY, DUE, key, question_key, turn_key
from gateway.store.redis_lists import list_key
from gateway.store.redis_scripts import BEFORE, LAST, MOVE, RANGE, SUMMARIZE, run, run_on
from gateway.store.redis_wire import Command, RedisWire, Reply
from gateway.store.rows import (
    AcquiredConversation,
    AuditRow,
    ConversationRow,
    ConversationSettings,
    InboxRow,
    Lease,
    Letter,
    LetterKind,
    OutboxRow,
    QuestionRow,
    Spans,
    Thread,
    TranscriptRow,
    TurnRow,
    show_row,
)

T = TypeVar("T")
DAY = 86_400.0
CHUNK = 100
MAX_STALE = 10_000
"""Names of dead letters that are read, some of which may be stale."""

VIEWS, ENTRIES = (":pos", ":views"), (":n", ":transcript")
TOGETHER = 20
"""Conversations that one script reads: a command for each takes both sides longer."""
FIRST = 32
"""Bodies that are read of each conversation before it is known to be long."""
AHEAD = 16 * search.PIECE
"""Rows of a long conversation that are requested in one round trip."""
MAX_VIEWS = 100_000
"""Views of a conversation that a search looks through."""

_inbound = msgspec.json.Decoder(Inbound).decode
_row = msgspec.json.Decoder(ConversationRow).decode
_turn = msgspec.json.Decoder(TurnRow).decode
_view = msgspec.json.Decoder(OutboxRow).decode
_question = msgspec.json.Decoder(QuestionRow).decode
_entry = msgspec.json.Decoder(TranscriptRow).decode
_audit = msgspec.json.Decoder(AuditRow).decode


class LongReads:
    """Reads a long conversation in a thread of the caller's, piece by piece, so that it blocks
    neither Redis nor the event loop."""

    def __init__(self, client: BlockingRedis) -> None:
        self._pool = client.connection_pool

    def read(
        self, conversation: str, where: tuple[str, str], start: int, end: int
    ) -> Generator[list[bytes], None, None]:
        """Yield the bodies from the place `start` to before `end`, the newest first, in pieces.
        Removed ones are left out. StoreFailed."""
        try:
            connection = cast("Any", self._pool.get_connection())
            try:
                yield from _read_ahead(connection, conversation, where, (start, end))
            except BaseException:  # replies may be on their way, also if the caller has enough
                connection.disconnect()
                raise
            finally:
                self._pool.release(connection)
        except RedisError as error:
            raise StoreFailed(f"Redis could not be reached: {error}") from error

    def leave(self) -> None:
        """Read over new connections from now on."""
        self._pool.disconnect(inuse_connections=False)


def _read_ahead(
    connection: Any, conversation: str, where: tuple[str, str], span: tuple[int, int]
) -> Iterator[list[bytes]]:
    """Yield bodies in pieces. Those of the next round trip are on their way while these are used.
    Plain commands: a script that hands so much on takes Redis twice the time."""
    index, bodies = ((key(conversation) + part).encode() for part in where)
    start, end = span

    def ask(ids: Sequence[bytes]) -> int:
        """Ask for the next ids, then for the bodies of `ids`, in so many pieces."""
        nonlocal start
        pieces = [ids[at : at + search.PIECE] for at in range(0, len(ids), search.PIECE)]
        wanted: list[Any] = [(b"ZRANGE", index, start, min(start + AHEAD, end) - 1, b"REV")]
        wanted += ((b"HMGET", bodies, *piece) for piece in pieces)
        connection.send_packed_command([b"".join(map(hiredis.pack_command, wanted))])
        start += AHEAD
        return len(pieces)

    count, ids = ask(()), [b""]
    while ids:
        ids = connection.read_response()
        following = ask(ids) if ids else 0
        yield from (_drop_removed(connection.read_response()) for _ in range(count))
        count = following


class RedisReads:
    """Reads of conversations, of questions and of the directory."""

    def __init__(self, reads: RedisWire, writes: RedisWire, long: LongReads) -> None:
        self._reads = reads
        self._writes = writes
        self._long = long

    async def arrivals(self, conversation: str, after: int) -> tuple[InboxRow, ...]:
        found = await self._range(conversation, (":waiting", ":in"), (f"({after}", "+inf", -1))
        return tuple(_inbox_rows(conversation, found, []))

    async def letters(self, limit: int) -> tuple[Letter, ...]:
        found: list[Letter] = []
        for start in range(0, MAX_STALE, CHUNK):
            names = await self._list("ZRANGE", DEAD, start, start + CHUNK - 1, "REV")
            if not names or len(found) >= limit:
                break
            found += await self._letters_of([name.decode() for name in names])
        return tuple(found[:limit])

    async def _letters_of(self, members: Sequence[str]) -> list[Letter]:
        """Return the existing letters of the index, which may name more."""
        placed = [tuple(member.split(" ", 1)) for member in members]
        bodies = await self._reads.call(
            *(
                ("HGET", f"{key(where)}:{what}", name)
                for where, name in placed
                for what in ("letters", "dead")
            )
        )
        found: list[Letter] = []
        for n, (where, name) in enumerate(placed):
            match bodies[2 * n : 2 * n + 2]:
                case [bytes(body), _]:
                    found.append(read_letter(name, where, body))
                case [_, bytes(body)]:
                    found.append(_old_letter(where, name, body))
        return found

    async def find_letter(self, name: str) -> Letter | None:
        """Return the letter `name`, wherever it is."""
        cursor = b"0"
        while True:
            (reply,) = await self._reads.call(("ZSCAN", DEAD, cursor, "MATCH", f"* {name}"))
            cursor, flat = cast("tuple[bytes, list[bytes]]", reply)
            for letter in await self._letters_of([one.decode() for one in flat[::2]]):
                return letter
            if cursor == b"0":
                return None

    async def _list(self, *command: str | int | float) -> list[bytes]:
        (found,) = await self._reads.call(command)
        return cast("list[bytes]", found)

    async def _bytes(self, *command: str | int | float) -> bytes | None:
        (found,) = await self._reads.call(command)
        return cast("bytes | None", found)

    async def _range(
        self, conversation: str, where: tuple[str, str], limits: tuple[str, str, int]
    ) -> list[tuple[bytes, bytes]]:
        flat = await self._list(*cast("tuple[str]", run(RANGE, key(conversation), *where, *limits)))
        return list(zip(flat[::2], flat[1::2], strict=True))

    async def records(self, turn: str) -> tuple[Record, ...]:
        where = await self._bytes("GET", turn_key(turn))
        if where is None:
            return ()
        flat = await self._list("HGETALL", f"{key(where.decode())}:r:{turn}")
        rows = sorted((int(n), body) for n, body in zip(flat[::2], flat[1::2], strict=True))
        return tuple(read_record(turn, n, body) for n, body in rows)

    async def locate(self, turn: str) -> str:
        where = await self._bytes("GET", turn_key(turn))
        return where.decode() if where is not None else ""

    async def turn(self, turn: str) -> TurnRow | None:
        where = await self._bytes("GET", turn_key(turn))
        if where is None:
            return None
        body = await self._bytes("HGET", f"{key(where.decode())}:turns", turn)
        return read_row("turn", turn, body, _turn) if body else None

    async def outbox(self, conversation: str, turn: str) -> tuple[OutboxRow, ...]:
        everything = ("-inf", "+inf", -1)
        found = await self._range(conversation, (f":o:{turn}", ":views"), everything)
        return tuple(readable("view", _view, ([body] for _, body in found)))

    async def thread(self, conversation: str, spans: Spans) -> Thread:
        scripts = (
            run(RANGE, key(conversation), ":n", ":transcript", start, f"({end}", -1)
            for start, end in spans
        )
        found = cast("list[list[bytes]]", await self._reads.call(*scripts)) if spans else []
        bodies = ([body] for flat in found for body in flat[1::2])
        return tuple(row.messages for row in readable("transcript", _entry, bodies))

    async def transcript(
        self, conversation: str, start: int, end: int
    ) -> tuple[TranscriptRow, ...]:
        found = await self._range(conversation, (":n", ":transcript"), (str(start), f"({end}", -1))
        return tuple(readable("transcript", _entry, ([body] for _, body in found)))

    async def settings(self, conversation: str) -> ConversationSettings:
        body = await self._bytes("HGET", key(conversation), "row")
        rows = tuple(readable("conversation", _row, [[body]] if body else []))
        return rows[0].settings if rows else ConversationSettings()

    async def newest(self, conversation: str, limit: int) -> tuple[TranscriptRow, ...]:
        last = await self._list("ZRANGE", f"{key(conversation)}:n", -1, -1)
        end = int(last[0]) + 1 if last else 0
        return await self.transcript(conversation, max(0, end - limit), end)

    async def views(self, conversation: str, after: int, limit: int) -> tuple[Shown, ...]:
        wanted = (f"({after}", "+inf", limit)
        found = await self._range(conversation, (":rev", ":views"), wanted)
        return tuple(map(show_row, readable("view", _view, ([body] for _, body in found))))

    async def latest(self, conversation: str, limit: int, before: int = 0) -> tuple[Shown, ...]:
        script = run(BEFORE, key(conversation), *VIEWS, f"({before}" if before else "+inf", limit)
        bodies = await self._list(*cast("tuple[str]", script))
        return tuple(map(show_row, readable("view", _view, ([body] for body in reversed(bodies)))))

    async def summary(self, conversation: str) -> Summary | None:
        found = _read_summaries((conversation,), await self._ask_summaries((conversation,), 0))
        return found[0][0] if found else None

    async def _summarize(
        self, names: Sequence[str], views: int = 0
    ) -> AsyncGenerator[list[tuple[Summary, list[bytes | None]]], None]:
        """Yield the summaries of those `names` that exist, each with the bodies of its newest
        `views`, some at a time. The next two parts are on their way while one is used."""
        parts = [names[at : at + CHUNK] for at in range(0, len(names), CHUNK)]
        asked = (self._ask_summaries(part, views) for part in parts)
        coming = deque(itertools.islice(asked, 1))
        for part in parts:
            replies = await coming.popleft()
            coming.extend(itertools.islice(asked, 2 - len(coming)))
            yield _read_summaries(part, replies)

    def _ask_summaries(self, names: Sequence[str], views: int) -> "asyncio.Future[list[Reply]]":
        keys = [key(name) for name in names]
        some = (keys[at : at + TOGETHER] for at in range(0, len(keys), TOGETHER))
        return self._reads.ask(*(run_on(SUMMARIZE, one, views) for one in some))

    async def recent(self, scope: ListScope, limit: int, words: str = "") -> tuple[Summary, ...]:
        wanted = parse_words(words)
        most = search.MAX_SEARCHED if wanted else limit
        listed = await self._list("ZRANGE", list_key(scope.key), 0, most - 1, "REV")
        names = [name.decode() for name in listed]
        found: list[Summary] = []
        async with aclosing(self._summarize(names, FIRST if wanted else 0)) as read:
            async for some in read:
                found += await self._select(some, wanted)
                if len(found) >= limit:
                    break
        return tuple(sorted(found[:limit], key=lambda one: -one.at))

    async def _select(
        self, some: Sequence[tuple[Summary, list[bytes | None]]], words: frozenset[str]
    ) -> list[Summary]:
        """Return the summaries of the conversations that contain the words."""
        if not words:
            return [one for one, _ in some]

        def look() -> list[frozenset[str]]:
            return [
                search.miss(words, one.title, (_drop_removed(row),), _read_shown)
                for one, row in some
            ]

        found = []
        for (one, row), missing in zip(some, await asyncio.to_thread(look), strict=True):
            if missing and len(row) == FIRST:
                missing = await self._seek_older(one.conversation, missing)
            if not missing:
                found.append(one)
        return found

    async def _seek_older(self, conversation: str, missing: frozenset[str]) -> frozenset[str]:
        """Return those of the words that no older view contains."""

        def look() -> frozenset[str]:
            with closing(self._long.read(conversation, VIEWS, FIRST, MAX_VIEWS)) as pieces:
                return search.seek(missing, pieces, _read_shown)

        return await asyncio.to_thread(look)

    async def find_holding(
        self, conversations: Sequence[str], words: frozenset[str], limit: int
    ) -> tuple[tuple[str, tuple[TranscriptRow, ...]], ...]:
        found: list[tuple[str, tuple[TranscriptRow, ...]]] = []
        for start in range(0, len(conversations), CHUNK):
            names = conversations[start : start + CHUNK]
            bodies = await self._newest_bodies(names, ENTRIES, limit)
            looked = await asyncio.to_thread(_hold_each, words, bodies, limit)
            found += ((name, rows) for name, rows in zip(names, looked, strict=True) if rows)
        return tuple(found)

    async def _newest_bodies(
        self, conversations: Sequence[str], where: tuple[str, str], limit: int
    ) -> list[list[Sequence[bytes | None]]]:
        """Return the newest bodies of each conversation in pieces, newest first."""
        first = await self._first_bodies(conversations, where)
        found: list[list[Sequence[bytes | None]]] = [[one] for one in first]
        for name, pieces in zip(conversations, found, strict=True):
            if len(pieces[0]) == FIRST:
                pieces += await asyncio.to_thread(list, self._long.read(name, where, FIRST, limit))
        return found

    async def _first_bodies(
        self, conversations: Sequence[str], where: tuple[str, str]
    ) -> list[list[bytes | None]]:
        scripts = (run(LAST, key(name), *where, 0, FIRST - 1) for name in conversations)
        return cast("list[list[bytes | None]]", await self._reads.call(*scripts))

    async def audit(self, limit: int) -> tuple[AuditRow, ...]:
        if limit < 1:
            return ()
        found = await self._list("ZRANGE", AUDIT, 0, limit - 1, "REV")
        bodies = ([member.split(b" ", 2)[2]] for member in found)
        return tuple(readable("audit", _audit, bodies))

    # ---- questions -----------------------------------------------------------------------

    async def find(self, question: str) -> tuple[str, QuestionRow] | None:
        where = await self._bytes("GET", question_key(question))
        if where is None:
            return None
        body = await self._bytes("HGET", f"{key(where.decode())}:questions", question)
        found = readable("question", _question, [[body]] if body else [])
        return next(((where.decode(), one) for one in found), None)

    async def due(
        self, now: float, limit: int, after: tuple[str, QuestionRow] | None = None
    ) -> tuple[tuple[str, QuestionRow], ...]:
        start = (after[1].due, f"{after[0]} {after[1].id}") if after is not None else (0.0, "")
        found = await self._open(start, now, limit)
        return tuple((where, row) for where, row in found if row.due <= now)

    async def next_due(self, after: float = 0.0) -> float | None:
        found = await self._open((after, chr(0x10FFFF)), float("inf"), 1)
        return found[0][1].due if found else None

    async def _open(
        self, after: tuple[float, str], until: float, limit: int
    ) -> list[tuple[str, QuestionRow]]:
        """Return open questions by due time, after `after` (time, member). The index may name
        closed ones, or too early a time; such entries are corrected."""
        rows: list[tuple[str, QuestionRow]] = []
        wrong: list[Command] = []
        moved = False
        start = 0
        while len(rows) < limit:
            span = (after[0], until, "BYSCORE", "LIMIT", start, CHUNK, "WITHSCORES")
            flat = await self._list("ZRANGE", DUE, *span)
            if not flat:
                break
            start += CHUNK
            scored = ((m.decode(), float(at)) for m, at in pairs(flat))
            entries = [(member, at) for member, at in scored if (at, member) > after]
            named = await self._load_named([member for member, _ in entries])
            for (member, at), row in zip(entries, named, strict=True):
                if isinstance(row, Letter):  # otherwise it would be due forever
                    wrong += self._set_aside(row)
                    wrong.append(run(MOVE, DUE, member, at, ""))
                elif row is None or row.due <= 0:
                    if row is not None or at < ambient.now() - DAY:
                        wrong.append(run(MOVE, DUE, member, at, ""))
                elif row.due > at:
                    wrong.append(run(MOVE, DUE, member, at, row.due))
                    moved = True
                else:
                    rows.append((member.split(" ")[0], row))
        if wrong:
            await self._writes.call(*wrong)
        return await self._open(after, until, limit) if moved else rows[:limit]

    def _set_aside(self, letter: Letter) -> list[Command]:
        return [*index_letter(letter), ("SREM", f"{key(letter.conversation)}:open", letter.name)]

    async def _load_named(self, entries: Sequence[str]) -> list[QuestionRow | Letter | None]:
        places = [tuple(member.split(" ", 1)) for member in entries]
        asked = (("HGET", f"{key(where)}:questions", name) for where, name in places)
        bodies = cast("list[bytes | None]", await self._reads.call(*asked))
        found: list[QuestionRow | Letter | None] = []
        for (where, name), body in zip(places, bodies, strict=True):
            damaged: list[Letter] = []
            rows = [(name, body)] if body else []
            read = list(read_each(rows, _question, "question", where, damaged))
            found.append(read[0] if read else damaged[0] if damaged else None)
        return found

    # ---- directory -----------------------------------------------------------------------

    async def get(self, key: str) -> bytes | None:
        return await self._bytes("HGET", DIRECTORY, key)

    async def keys(self, prefix: str) -> tuple[str, ...]:
        low, high = f"[{prefix}", f"({prefix}\U0010ffff" if prefix else "+"
        names = f"{DIRECTORY}:names"
        found = await self._list("ZRANGE", names, low if prefix else "-", high, "BYLEX")
        return tuple(sorted(name.decode() for name in found))


def _inbox_rows(
    conversation: str, rows: Iterable[tuple[bytes, bytes]], damaged: list[Letter]
) -> Iterator[InboxRow]:
    """Waiting rows from (seq, "at json")."""
    for seq, body in rows:
        at, _, inbound = body.partition(b" ")
        one = [(seq.decode(), inbound)]
        for read in read_each(one, _inbound, "message", conversation, damaged):
            yield InboxRow(seq=int(seq), at=float(at), inbound=read)


def index_letter(letter: Letter) -> list[Command]:
    """Commands that store a letter beside any commit."""
    member = f"{letter.conversation} {letter.id}"
    return [
        ("ZADD", DEAD, letter.at, member),
        ("HSET", f"{key(letter.conversation)}:letters", letter.id, encode_letter(letter)),
    ]


def _old_letter(conversation: str, seq: str, body: bytes) -> Letter:
    """A message that an earlier version gave up."""
    at, _, inbound = body.partition(b" ")
    why = "given up by an earlier version"
    return Letter(
        id=seq,
        kind="message",
        conversation=conversation,
        name=seq,
        at=float(at),
        why=why,
        payload=inbound,
    )


def read_opened(
    lease: Lease, head: Sequence[bytes], found: Sequence[list[bytes]], began: float
) -> AcquiredConversation:
    """Decode the reply of ACQUIRE."""
    last, crashed, body, doubt = head
    where = lease.conversation
    inbox, turns, views, questions = (pairs(flat) for flat in found)
    damaged: list[Letter] = []

    def read(
        kind: LetterKind, rows: Iterable[tuple[bytes, bytes]], decode: Callable[[bytes], T]
    ) -> list[T]:
        named = ((name.decode(), one) for name, one in rows)
        return list(read_each(named, decode, kind, where, damaged))

    row = read("conversation", [(b"", body)] if body else [], _row)
    return AcquiredConversation(
        lease=lease,
        row=row[0] if row else ConversationRow(),
        last=int(last),
        inbox=tuple(_inbox_rows(where, inbox, damaged)),
        turns=tuple(sorted(read("turn", turns, _turn), key=lambda turn: turn.id)),
        views=tuple(sorted(read("view", views, _view), key=lambda view: view.position)),
        questions=tuple(sorted(read("question", questions, _question), key=lambda one: one.id)),
        crashed=crashed == b"1",
        doubt=int(doubt),
        damaged=tuple(damaged),
        began=began,
    )


def pairs(flat: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """`a, 1, b, 2` as (a, 1), (b, 2)."""
    return list(zip(flat[::2], flat[1::2], strict=True))


def _drop_removed(bodies: Sequence[bytes | None]) -> list[bytes]:
    """Drop the missing ones: an index may name a removed body."""
    return [body for body in bodies if body is not None]


def _read_shown(body: bytes) -> str:
    return "".join(search.visible_text(row.view) for row in readable("view", _view, [[body]]))


def _hold_each(
    words: frozenset[str], bodies: Sequence[Sequence[Sequence[bytes | None]]], limit: int
) -> list[tuple[TranscriptRow, ...]]:
    """Return the last rows of each conversation; none if one of the folded words occurs in none of
    them."""
    found: list[tuple[TranscriptRow, ...]] = []
    for pieces in bodies:
        flat = [body for piece in pieces for body in _drop_removed(piece)][:limit][::-1]
        held = flat if search.may_hold(words, flat) else []
        found.append(tuple(readable("transcript", _entry, ([body] for body in held))))
    return found


def _read_summaries(
    names: Sequence[str], replies: Sequence[Reply]
) -> list[tuple[Summary, list[bytes | None]]]:
    found = []
    rows = itertools.chain.from_iterable(cast("Sequence[list[list[list[bytes | None]]]]", replies))
    for name, row in zip(names, rows, strict=True):
        if row:
            fields, live, bodies = row
            found.append((_summary(name, fields, live), bodies))
    return found


def _summary(address: str, row: Sequence[bytes | None], live: Sequence[bytes | None]) -> Summary:
    at, owner, body = row
    state = "running" if owner else "waiting" if b"parked" in live else "idle"
    rows = readable("conversation", _row, [[body]] if body else [])
    title, model = next(((row.title, row.settings.model) for row in rows), ("", ""))
    when = float(at or 0)
    return Summary(conversation=address, title=title, at=when, state=state, model=model)  # type: ignore[arg-type]
