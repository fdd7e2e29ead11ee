"""One turn's records: its effects and their results, in the order of commits.

Two kinds of record: *deferred* ones wait in the buffer and are written with the next commit; a
*barrier* writes everything before it, in order, in one commit. The journal in memory changes in the
same step in which the commit is queued, so nobody ever sees one without the other.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct

from agent_core.errors import Diverged
from agent_core.events import AgentEvent
from agent_core.messages import (
    Browsed,
    CommandResult,
    GivenFile,
    Picture,
    SharedLink,
    ToolCall,
)
from agent_core.models.port import ModelReply
from agent_core.phrases import Phrase
from agent_core.plan_edit import PlanEdit
from agent_core.questions import Answer, Question

Outcome = Literal["ok", "failed", "timed_out", "unknown", "cancelled", "denied"]


class Began(Struct, frozen=True, kw_only=True, tag_field="kind", tag="began"):
    """The turn's input and everything else it reads that is not an argument, as JSON."""

    key: str
    value: Raw


class Noted(Struct, frozen=True, kw_only=True, tag_field="kind", tag="noted"):
    """The value of a `once`, as JSON."""

    key: str
    value: Raw


class Emitted(Struct, frozen=True, kw_only=True, tag_field="kind", tag="emitted"):
    """An event that people may see."""

    key: str
    event: AgentEvent


class Replied(Struct, frozen=True, kw_only=True, tag_field="kind", tag="replied"):
    """A model's complete answer."""

    key: str
    reply: ModelReply


class Failed(Struct, frozen=True, kw_only=True, tag_field="kind", tag="failed"):
    """A model call that ended in a failure, raised the same on replay."""

    key: str
    error: Literal["model", "timeout", "budget", "calls", "cut"]
    text: str
    fault: str = ""
    phrases: tuple[Phrase, ...] = ()
    window: int = 0


class ToolStarted(Struct, frozen=True, kw_only=True, tag_field="kind", tag="tool_started"):
    """Stands before a side effect. `token` is the key for running an idempotent call again."""

    key: str
    call: ToolCall
    digest: str
    token: str


class ToolFinished(Struct, frozen=True, kw_only=True, tag_field="kind", tag="tool_finished"):
    """The result of a call. `unknown`: it began and its outcome is unknown. `shown`: shown to
    people in place of `content`; None: the content itself. `link`: what they can open now."""

    key: str
    call_id: str
    name: str
    digest: str
    content: str
    outcome: Outcome = "ok"
    files: tuple[GivenFile, ...] = ()
    caption: str = ""
    changed: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    command: CommandResult | None = None
    browsed: Browsed | None = None
    shown: str | Phrase | None = None
    seal: str = ""
    link: SharedLink | None = None
    at: float = 0.0


class QuestionAsked(Struct, frozen=True, kw_only=True, tag_field="kind", tag="asked"):
    """A question to a person; `id` cannot be guessed; `at` in seconds since 1970."""

    key: str
    id: str
    question: Question
    at: float


class Answered(Struct, frozen=True, kw_only=True, tag_field="kind", tag="answered"):
    """The answer to the question asked under `asked`."""

    key: str
    asked: str
    answer: Answer


class Steered(Struct, frozen=True, kw_only=True, tag_field="kind", tag="steered"):
    """Messages of people during the turn, also when there were none. `rows` of the inbox."""

    key: str
    texts: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()


class Amended(Struct, frozen=True, kw_only=True, tag_field="kind", tag="amended"):
    """A person's edit of the plan. `cut`: the branch that it ends while that runs, or ""."""

    key: str
    edit: PlanEdit
    cut: str = ""
    by: str = ""


class Broke(Struct, frozen=True, kw_only=True, tag_field="kind", tag="broke"):
    """The code and the journal diverged at `at`: from here the turn goes on from its records."""

    key: str
    at: str
    text: str


class Finished(Struct, frozen=True, kw_only=True, tag_field="kind", tag="finished"):
    """The turn's end with its final answer. `partial`: words of a failed turn that were visible
    already."""

    key: str
    text: str
    finish: Literal["stop", "limit", "error"] = "stop"
    partial: str = ""


class Stopped(Struct, frozen=True, kw_only=True, tag_field="kind", tag="stopped"):
    """The turn was ended from outside. `partial`: the words already visible."""

    key: str
    reason: Literal["stop", "interrupt", "dead", "error"]
    by: str = ""
    text: str = ""
    partial: str = ""


Record: TypeAlias = (
    Began
    | Noted
    | Emitted
    | Replied
    | Failed
    | ToolStarted
    | ToolFinished
    | QuestionAsked
    | Answered
    | Steered
    | Amended
    | Broke
    | Finished
    | Stopped
)
Write: TypeAlias = Callable[[tuple[Record, ...]], Awaitable[None]]
"""Queues one commit of these records without awaiting, and returns a future of its completion."""

R = TypeVar("R")
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Record)


def encode(record: Record) -> bytes:
    """The record as JSON."""
    return _encoder.encode(record)


def decode(body: bytes) -> Record:
    """Decode a record from its JSON."""
    record: Record = _decoder.decode(body)
    return record


def call_digest(call: ToolCall) -> str:
    """Return a fingerprint of a call: of its name and arguments."""
    return hashlib.sha256(f"{call.name}\0{call.arguments}".encode()).hexdigest()[:24]


class Journal:
    """The records of one turn in memory, and the buffer of those not yet queued."""

    def __init__(self, records: Iterable[Record], write: Write) -> None:
        self.records: list[Record] = list(records)
        self._by_key: dict[str, Record] = {record.key: record for record in self.records}
        self._used: set[str] = set()
        self._buffer: list[Record] = []
        self._write = write

    def find(self, key: str, kind: type[R]) -> R | None:
        """Return the record under `key`, None if there is none; Diverged if it is of another
        kind."""
        record = self._by_key.get(key)
        if record is None:
            return None
        if not isinstance(record, kind):
            wanted = getattr(kind, "__name__", kind)  # a union has no name
            raise Diverged(f"{key!r} holds {type(record).__name__}, not {wanted}")
        return record

    def count(self, kind: type[R], name: str) -> int:
        """Count the records of this kind whose key ends with `name`."""
        return sum(
            isinstance(record, kind) and record.key.rpartition("/")[2] == name
            for record in self.records
        )

    def claim(self, key: str) -> None:
        """Note that the code asked for `key`; a second time in one run is a bug."""
        if key in self._used:
            raise Diverged(f"the key {key!r} is used twice")
        self._used.add(key)

    def rewind(self) -> None:
        """The code runs again from the top."""
        self._used.clear()

    def defer(self, record: Record) -> None:
        """Add a record that rides on the next commit."""
        self._add(record)
        self._buffer.append(record)

    def put(self, *records: Record) -> Awaitable[None]:
        """Add records and queue one commit of the buffer and them, in this very step."""
        for record in records:
            self._add(record)
        batch = (*self._buffer, *records)
        self._buffer.clear()
        return self._write(batch)

    async def barrier(self, *records: Record) -> None:
        """Add records like `put`, and wait until the commit is stored; the commit outlives a
        cancelled waiter. Without records it writes the buffer, if it holds anything."""
        if records or self._buffer:
            await asyncio.shield(asyncio.ensure_future(self.put(*records)))  # noqa: TID251

    def _add(self, record: Record) -> None:
        if record.key in self._by_key:
            raise Diverged(f"the key {record.key!r} is written twice")
        self._by_key[record.key] = record
        self.records.append(record)
