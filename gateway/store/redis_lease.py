"""Commits of a lease on their way to Redis: numbered without gaps, encoded when they are sent."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from gateway.errors import Fenced, StoreFailed, Unstorable
from gateway.store.audit_chain import note_end
from gateway.store.redis_scripts import COMMIT, MOVE, run
from gateway.store.redis_wire import Command, Reply
from gateway.store.rows import Changes, Lease

ACTIVE, DUE, DEAD, AUDIT = "tk:active", "tk:due", "tk:dead", "tk:audit"
DIRECTORY = "tk:{directory}"

_encode = msgspec.json.Encoder().encode
Line: TypeAlias = tuple[str, float, bytes]
"""An audit line: its name in the store, time and body."""


def key(conversation: str) -> str:
    """The conversation's hash; its other keys begin with it."""
    return f"tk:{{{conversation}}}"


def turn_key(turn: str) -> str:
    """The key with the conversation of a turn."""
    return f"tk:of:{turn}"


def question_key(question: str) -> str:
    """The key with the conversation of a question."""
    return f"tk:q:{question}"


@dataclass(slots=True, kw_only=True)
class Held:
    """A lease of this process. `number` is the last commit's, `acknowledged` that of the last one
    known to be stored; `turns` are those whose place is written; `releasing`: its release is on its
    way."""

    lease: Lease
    number: int = 0
    acknowledged: int = 0
    broken: bool = False
    releasing: bool = False
    turns: set[str] = field(default_factory=set)
    journals: int | None = 30 * 86_400
    """Seconds that the journal of an ended turn stays, None for ever."""


class Commit:
    """One atomic write under a lease; with `seen` also its release. A request of a wire.

    Indexes outside of the conversation's slot are written before it and cleaned after it, so they
    always name a superset of what exists.
    """

    def __init__(
        self,
        held: Held,
        changes: Changes,
        seen: int | None,
        done: Callable[[str, Exception | None], None],
    ) -> None:
        self._held = held
        self._changes = changes
        self._seen = seen
        self._done = done
        self._number = 0
        self._audit: list[Line] = []
        """Named by this commit's number: the lease may have sent others before its reply."""
        self.lost = False
        """True if the store lacks what it acknowledged before: after a failover or a restore."""
        self._prepare_commit: list[Command] = []
        self.after: list[Command] = []
        """Notes for the wire once the commit is stored."""

    def commands(self) -> Sequence[Command]:
        held = self._held
        if held.broken:
            raise StoreFailed("an earlier commit of this lease failed")
        self._number = held.number = held.number + 1
        self._audit = _name_audit(self._changes, held)
        each = _operations(self._changes, held, self._audit)
        operations = [part for one in each for part in one]
        self._prepare_commit = list(_prepare_commit(self._changes, held))
        seen = "" if self._seen is None else self._seen
        base = key(held.lease.conversation)
        lease = (held.lease.token, held.lease.nonce, held.number)
        return (*self._prepare_commit, run(COMMIT, base, *lease, seen, *operations))

    def settle(self, replies: Sequence[Reply]) -> None:
        match replies[-1]:
            case [b"kept" | b"held" | b"released" as outcome, int(epoch)]:
                self._held.acknowledged = max(self._held.acknowledged, self._number)
                failed = any(isinstance(reply, Exception) for reply in replies[:-1])
                self.after = [
                    *(self._prepare_commit if failed else ()),
                    *_finish_commit(self._changes, self._held, self._audit),
                ]
                if outcome == b"released":
                    name = self._held.lease.conversation
                    self.after.append(run(MOVE, ACTIVE, name, epoch, ""))
                self._done(outcome.decode(), None)
            case [b"gap", *_]:
                self.lost = True
                self.fail(StoreFailed("the store has lost earlier commits of this lease"))
            case [b"fenced" | b"lost" as outcome, *_]:
                self.lost = outcome == b"lost"
                name = self._held.lease.conversation
                self._done("", Fenced(f"{name} is held under a newer token, or by nobody"))
            case [b"clash", *_]:
                self.fail(Unstorable("refused by the store: the same row stands there already"))
            case [b"damaged", *_]:
                self.fail(
                    Unstorable("refused by the store: entries of another kind are in its place")
                )
            case [bytes(why), *_]:
                self.fail(StoreFailed(f"refused by the store: {why.decode()}"))
            case other:
                self.fail(StoreFailed(f"refused by the store: {other}"))

    def fail(self, error: Exception) -> None:
        self._held.broken = True
        self._done("", error)


def _name_audit(changes: Changes, held: Held) -> list[Line]:
    """Return the audit lines of a commit, by names that follow from its number."""
    place = f"{held.lease.token}.{held.number}"
    return [(f"{place}.{n}", line.at, _encode(line)) for n, line in enumerate(changes.audit)]


def resolve(future: "asyncio.Future[bool]", outcome: str, error: Exception | None) -> None:
    """Tell a waiter of its commit; it may have been cancelled meanwhile."""
    if future.done():
        return
    if error is None:
        future.set_result(outcome != "held")
    else:
        future.set_exception(error)


def flush_audit(conversation: str, lines: Sequence[Line]) -> Iterator[Command]:
    """Move a conversation's audit lines to the global list; repeating it is harmless."""
    for name, at, body in lines:
        yield "ZADD", AUDIT, at, f"{conversation} {name} ".encode() + body
    if lines:
        yield "HDEL", f"{key(conversation)}:audit", *(name for name, _, _ in lines)


def _operations(changes: Changes, held: Held, audit: Sequence[Line]) -> Iterator[Command]:
    stays = "" if held.journals is None else held.journals
    for record in changes.records:
        yield "r", record.turn, record.n, record.body()
    for turn in changes.turns:
        yield "t", turn.id, turn.status, _encode(turn), stays
    for seq in changes.done:
        yield "d", seq
    for message in changes.unheard:
        yield "u", message
    for letter in changes.letters:
        yield "l", letter.id, letter.kind, letter.name, _encode(letter)
    for view in changes.views:
        yield "v", view.turn, view.name, view.rev, view.position, int(view.is_unsent), _encode(view)
    for question in changes.questions:
        yield "q", question.id, question.status, _encode(question)
    for entry in changes.transcript:
        yield "s", entry.n, _encode(entry)
    if changes.row is not None:
        yield "c", _encode(changes.row)
    for name, at, body in audit:
        yield "a", name, f"{at!r} ".encode() + body


def _prepare_commit(changes: Changes, held: Held) -> Iterator[Command]:
    conversation = held.lease.conversation
    named = {turn.id for turn in changes.turns}
    named.update(row.turn for row in changes.records)
    named.update(row.turn for row in changes.views)
    for turn in named - held.turns:
        yield "SET", turn_key(turn), conversation
    held.turns |= named
    for question in changes.questions:
        yield "SET", question_key(question.id), conversation
        if question.due > 0:
            yield "ZADD", DUE, "LT", question.due, f"{conversation} {question.id}"
    for letter in changes.letters:
        yield "ZADD", DEAD, letter.at, f"{conversation} {letter.id}"


def _finish_commit(changes: Changes, held: Held, audit: Sequence[Line]) -> Iterator[Command]:
    conversation = held.lease.conversation
    closed = [q.id for q in changes.questions if q.status != "open" and q.due <= 0]
    closed += (letter.name for letter in changes.letters if letter.kind == "question")
    if closed:
        yield "ZREM", DUE, *(f"{conversation} {name}" for name in closed)
    yield from flush_audit(conversation, audit)
    if (note := note_end(changes.row, changes.audit)) is not None:
        yield "HSET", DIRECTORY, *note
        yield "ZADD", f"{DIRECTORY}:names", 0, note[0]
