"""What is read from Redis besides a new lease's `Opened`, on a connection of its own: a long
journal never stands before a commit. Indexes name more than there is; what they name is checked.
"""

from collections.abc import Sequence
from typing import cast

import msgspec

from agent_core import ambient
from agent_core.journal import Record
from agent_core.journal import decode as decode_record
from gateway.messages import Inbound
from gateway.ports import Shown, Summary
from gateway.store import search
from gateway.store.redis_lease import AUDIT, DEAD, DUE, key, question_key, turn_key
from gateway.store.redis_scripts import LATEST, MOVE, PREFIXED, RANGE, run
from gateway.store.redis_wire import Command, Wire
from gateway.store.rows import (
    AuditRow,
    ConversationRow,
    InboxRow,
    Lease,
    Opened,
    OutboxRow,
    QuestionRow,
    Thread,
    TranscriptRow,
    TurnRow,
    shown,
)

KNOWN, DIRECTORY = "tk:conversations", "tk:{directory}"
DAY = 86_400.0
CHUNK = 100

_inbound = msgspec.json.Decoder(Inbound).decode
_row = msgspec.json.Decoder(ConversationRow).decode
_turn = msgspec.json.Decoder(TurnRow).decode
_view = msgspec.json.Decoder(OutboxRow).decode
_question = msgspec.json.Decoder(QuestionRow).decode
_entry = msgspec.json.Decoder(TranscriptRow).decode
_thread = msgspec.json.Decoder(Thread).decode
_audit = msgspec.json.Decoder(AuditRow).decode


class Reading:
    """Reads, questions and the directory's reads."""

    def __init__(self, reads: Wire, writes: Wire) -> None:
        self._reads = reads
        self._writes = writes

    async def arrivals(self, conversation: str, after: int) -> tuple[InboxRow, ...]:
        found = await self._range(conversation, (":waiting", ":in"), (f"({after}", "+inf", -1))
        return tuple(inbox_row(seq, body) for seq, body in found)

    async def dead_letters(self, limit: int) -> tuple[InboxRow, ...]:
        rows: list[InboxRow] = []
        start = 0
        while len(rows) < limit:
            names = await self._list("ZRANGE", DEAD, start, start + CHUNK - 1, "REV")
            if not names:
                break
            start += len(names)
            placed = [name.decode().split(" ") for name in names]
            found = await self._reads.call(
                *(("HGET", f"{key(where)}:dead", seq) for where, seq in placed)
            )
            rows += (
                inbox_row(seq.encode(), body)
                for (_, seq), body in zip(placed, found, strict=True)
                if isinstance(body, bytes)
            )
        return tuple(rows[:limit])

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
        return tuple(decode_record(body) for _, body in rows)

    async def turn(self, turn: str) -> TurnRow | None:
        where = await self._bytes("GET", turn_key(turn))
        if where is None:
            return None
        body = await self._bytes("HGET", f"{key(where.decode())}:turns", turn)
        return _turn(body) if body else None

    async def outbox(self, conversation: str, turn: str) -> tuple[OutboxRow, ...]:
        everything = ("-inf", "+inf", -1)
        found = await self._range(conversation, (f":o:{turn}", ":views"), everything)
        return tuple(_view(body) for _, body in found)

    async def thread(self, conversation: str) -> Thread:
        body = await self._bytes("GET", f"{key(conversation)}:thread")
        return _thread(body) if body else ()

    async def transcript(
        self, conversation: str, start: int, end: int
    ) -> tuple[TranscriptRow, ...]:
        found = await self._range(conversation, (":n", ":transcript"), (str(start), f"({end}", -1))
        return tuple(_entry(body) for _, body in found)

    async def newest(self, conversation: str, limit: int) -> tuple[TranscriptRow, ...]:
        last = await self._list("ZRANGE", f"{key(conversation)}:n", -1, -1)
        end = int(last[0]) + 1 if last else 0
        return await self.transcript(conversation, max(0, end - limit), end)

    async def views(
        self, conversation: str, after: int, limit: int, *, latest: bool = False
    ) -> tuple[Shown, ...]:
        if latest:
            script = run(LATEST, key(conversation), after, limit)
            bodies = (await self._list(*cast("tuple[str]", script)))[::-1]
        else:
            wanted = (f"({after}", "+inf", limit)
            bodies = [b for _, b in await self._range(conversation, (":rev", ":views"), wanted)]
        return tuple(shown(_view(body)) for body in bodies)

    async def conversations(self, prefix: str, limit: int, words: str = "") -> tuple[Summary, ...]:
        missing = search.wanted(words)
        script = run(PREFIXED, KNOWN, prefix, search.MOST_SEARCHED if missing else limit)
        names = [name.decode() for name in await self._list(*cast("tuple[str]", script))]
        fields = (("HMGET", key(name), "at", "owner", "row") for name in names)
        lives = (("HVALS", f"{key(name)}:live") for name in names)
        replies = cast("list[list[bytes | None]]", await self._reads.call(*fields, *lives))
        rows = zip(names, replies, replies[len(names) :], strict=False)
        found = [_summary(name, row, live) for name, row, live in rows if row[0]]
        found.sort(key=lambda one: -one.at)
        return tuple(await self._holding(found, missing, limit) if missing else found)

    async def _holding(
        self, found: Sequence[Summary], missing: frozenset[str], limit: int
    ) -> list[Summary]:
        """Those of `found` that hold the words: one conversation's views in memory at a time."""
        kept: list[Summary] = []
        for one in found:
            bodies = await self._list("HVALS", f"{key(one.conversation)}:views")
            if search.holds(missing, one.title, (_view(body).view for body in bodies)):
                kept.append(one)
            if len(kept) == limit:
                break
        return kept

    async def audit(self, limit: int) -> tuple[AuditRow, ...]:
        if limit < 1:
            return ()
        found = await self._list("ZRANGE", AUDIT, 0, limit - 1, "REV")
        return tuple(_audit(member.split(b" ", 2)[2]) for member in found)

    # ---- questions -----------------------------------------------------------------------

    async def find(self, question: str) -> tuple[str, QuestionRow] | None:
        where = await self._bytes("GET", question_key(question))
        if where is None:
            return None
        body = await self._bytes("HGET", f"{key(where.decode())}:questions", question)
        return (where.decode(), _question(body)) if body else None

    async def due(self, now: float, limit: int) -> tuple[tuple[str, QuestionRow], ...]:
        found = await self._open(now, limit)
        return tuple((where, row) for where, row in found if row.due <= now)

    async def next_due(self) -> float | None:
        found = await self._open(float("inf"), 1)
        return found[0][1].due if found else None

    async def _open(self, until: float, limit: int) -> list[tuple[str, QuestionRow]]:
        """Open questions by when they are due. The index may name closed ones, or too early a time: what
        is found so is put right."""
        rows: list[tuple[str, QuestionRow]] = []
        wrong: list[Command] = []
        moved = False
        start = 0
        while len(rows) < limit:
            span = ("-inf", until, "BYSCORE", "LIMIT", start, CHUNK, "WITHSCORES")
            flat = await self._list("ZRANGE", DUE, *span)
            if not flat:
                break
            start += CHUNK
            entries = [(m.decode(), float(at)) for m, at in zip(flat[::2], flat[1::2], strict=True)]
            for (member, at), row in zip(entries, await self._named(entries), strict=True):
                if row is None or row.due <= 0:
                    if row is not None or at < ambient.now() - DAY:
                        wrong.append(run(MOVE, DUE, member, at, ""))
                elif row.due > at:
                    wrong.append(run(MOVE, DUE, member, at, row.due))
                    moved = True
                else:
                    rows.append((member.split(" ")[0], row))
        if wrong:
            await self._writes.call(*wrong)
        return await self._open(until, limit) if moved else rows[:limit]

    async def _named(self, entries: Sequence[tuple[str, float]]) -> list[QuestionRow | None]:
        places = (member.split(" ") for member, _ in entries)
        asked = (("HGET", f"{key(where)}:questions", name) for where, name in places)
        bodies = cast("list[bytes | None]", await self._reads.call(*asked))
        return [_question(body) if body else None for body in bodies]

    # ---- directory -----------------------------------------------------------------------

    async def get(self, key: str) -> bytes | None:
        return await self._bytes("HGET", DIRECTORY, key)

    async def keys(self, prefix: str) -> tuple[str, ...]:
        names = (name.decode() for name in await self._list("HKEYS", DIRECTORY))
        return tuple(sorted(name for name in names if name.startswith(prefix)))


def inbox_row(seq: bytes, body: bytes) -> InboxRow:
    at, _, inbound = body.partition(b" ")
    return InboxRow(seq=int(seq), at=float(at), inbound=_inbound(inbound))


def opened(lease: Lease, head: Sequence[bytes], bodies: Sequence[list[bytes]]) -> Opened:
    last, crashed, row = head
    seqs, inbox, turns, views, questions = bodies
    return Opened(
        lease=lease,
        row=_row(row) if row else ConversationRow(),
        last=int(last),
        inbox=tuple(map(inbox_row, seqs, inbox)),
        turns=tuple(sorted(map(_turn, turns), key=lambda turn: turn.id)),
        views=tuple(sorted(map(_view, views), key=lambda view: view.position)),
        questions=tuple(sorted(map(_question, questions), key=lambda asked: asked.id)),
        crashed=crashed == b"1",
    )


def _summary(address: str, row: Sequence[bytes | None], live: Sequence[bytes | None]) -> Summary:
    at, owner, body = row
    state = "running" if owner else "waiting" if b"parked" in live else "idle"
    title = _row(body).title if body else ""
    return Summary(conversation=address, title=title, at=float(at or 0), state=state)  # type: ignore[arg-type]
