"""One turn in its session: its row, its journal, its views, and the changes for its next commit."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from agent_core import ambient
from agent_core.context.transcript import messages_of, settle_messages
from agent_core.errors import Cancelled, Suspend
from agent_core.journal import (
    Answered,
    Began,
    Finished,
    Journal,
    Noted,
    QuestionAsked,
    Record,
    Replied,
    Stopped,
    ToolStarted,
)
from agent_core.messages import Message, Text
from agent_core.orchestration.brief import Brief, TurnResult
from agent_core.scope import Turn
from gateway.delivery.fold import ViewFold
from gateway.messages import MessageReceived, PlanRetry, Sender
from gateway.roles import Role
from gateway.store.rows import InboxRow, Letter, TurnRow, TurnStatus
from gateway.texts import say

Writer: TypeAlias = "Callable[[OpenTurn, tuple[Record, ...]], Awaitable[None]]"
Outcome: TypeAlias = TurnResult | Suspend | Exception


def new_row(
    inbox: tuple[int, ...], sender: Sender, role: Role, message: str, text: str, version: str
) -> TurnRow:
    """Return the row of a turn that begins now with these inbox rows. `message`: the platform's id
    of the first; `text`: what they say; `version`: of the code."""
    return TurnRow(
        id=ambient.new_id(),
        status="running",
        sender=sender.key,
        sender_name=sender.name or sender.handle or sender.id,
        language=sender.language,
        role=role,
        inbox=inbox,
        message=message,
        begun=ambient.now(),
        code=version,
        text=text[:80],
    )


class OpenTurn:
    """A turn in memory. `done`: inbox rows that its next commit marks as done."""

    def __init__(
        self, row: TurnRow, brief: Brief, fold: ViewFold, records: Iterable[Record], write: Writer
    ) -> None:
        self.row = row
        self.brief = brief
        self.fold = fold
        self.journal = Journal(records, lambda batch: write(self, batch))
        self.count = len(self.journal.records)
        self.done: tuple[int, ...] = ()
        self.letters: tuple[Letter, ...] = ()
        """Dead letters that its next commit takes along."""
        self.ending: tuple[Message, ...] | None = None
        self.seen: tuple[Message, ...] = ()
        """The history that its model saw at the end, if that differs from its history plus
        `ending`."""
        self.stored = False
        self.turn: Turn | None = None
        self.task: asyncio.Task[None] | None = None
        self.outcome: Outcome | None = None
        self._withdrawn = False
        self.changes: list[InboxRow] = []
        """Edits and deletions of its message that it has not been told of."""
        self.steered: set[str] = set()
        """Messages that it was told of while it ran in this process."""
        self.words = ""
        """The live text of the answer under way."""
        for record in self.journal.records:
            fold.add(record)

    @property
    def id(self) -> str:
        """The turn's id."""
        return self.row.id

    @property
    def closed(self) -> bool:
        """True once its last commit is queued."""
        return self.row.status not in ("running", "parked")

    def read_first_rows(self) -> tuple[InboxRow, ...]:
        """The inbox rows that it began with, as far as they are known."""
        return read_inbound(self.journal.records)

    def has_heard(self, message: str) -> bool:
        """Return True if it began with this message, or with several and this among them, or was
        told of it since."""
        if message in (self.row.message, *self.steered) or read_told(self.journal.records, message):
            return bool(message)
        rows = (one.inbound for one in read_asked(self.journal.records))
        return bool(message) and any(
            isinstance(one, MessageReceived) and one.message == message for one in rows
        )

    def note_rows(self, rows: Sequence[InboxRow], again: Sequence[InboxRow]) -> None:
        """Keep the rows that begin it, from which they can be resubmitted, and earlier ones that it
        asks again."""
        for key, kept in ((INBOUND, rows), (AGAIN, again)):
            if kept:
                value = msgspec.Raw(msgspec.json.encode(tuple(kept)))
                self.journal.defer(Noted(key=key, value=value))

    def note_told(self, message: MessageReceived) -> None:
        """Keep, with its next commit, that the turn is told of this message while it runs: an edit
        of it is then known."""
        if message.message and not self.has_heard(message.message):
            self.steered.add(message.message)
            value = msgspec.Raw(msgspec.json.encode(message.text))
            self.journal.defer(Noted(key=f"{TOLD}{message.message}", value=value))

    def list_loose_rows(self) -> tuple[InboxRow, ...]:
        """Return the rows it began with while nothing of it is stored and no model has answered:
        they still wait in the store. Empty if its first commit holds more than that."""
        known = any(isinstance(record, Replied | ToolStarted) for record in self.journal.records)
        rows = () if known or self.stored or self.closed else self.read_first_rows()
        return rows if len(self.done) == len(rows) and not self._withdrawn else ()

    def withdraw(self) -> None:
        """End it without a trace in any state; its rows wait again afterwards."""
        self._withdrawn = True
        if self.turn is not None:
            self.turn.suspend(Cancelled())
        if self.task is not None:
            self.task.cancel()

    def give_back_rows(self, queue: deque[InboxRow]) -> bool:
        """Put the rows of a withdrawn turn in front of the waiting ones. Return False if it was not
        withdrawn, or was stopped meanwhile."""
        if not self._withdrawn or self.closed:
            return False
        queue.extendleft(reversed(self.read_first_rows()))
        return True

    def open_questions(self) -> tuple[QuestionAsked, ...]:
        """Questions asked and not answered, in order."""
        answered = {r.asked for r in self.journal.records if isinstance(r, Answered)}
        return tuple(
            record
            for record in self.journal.records
            if isinstance(record, QuestionAsked) and record.key not in answered
        )

    def status_after(self, records: Iterable[Record]) -> TurnStatus:
        """The status is a function of the journal, never set later."""
        status = self.row.status
        for record in records:
            if isinstance(record, Answered):
                status = "running"
            elif isinstance(record, Finished):
                status = "done"
            elif isinstance(record, Stopped):
                status = "dead" if record.reason in ("dead", "error") else "cancelled"
        return status

    def advance(self, records: Iterable[Record]) -> TurnRow | None:
        """The row to write with these records, None if it stays as it is stored."""
        status = self.status_after(records)
        if self.stored and status == self.row.status and not self.row.resumes:
            return None
        self.row = replace(self.row, status=status, resumes=0)
        self.stored = True
        return self.row

    def messages_when_stopped(self) -> tuple[Message, ...]:
        """Return the messages that a turn without an answer adds to the transcript."""
        facts = (self.brief.make_request(), *messages_of(self.journal.records))
        if self.words and facts[-1].role != "assistant":
            said = Message(role="assistant", parts=(Text(text=f"{self.words} (stopped)"),))
            return (*facts, said)
        return settle_messages(facts)


INBOUND, AGAIN, TOLD = "inbound", "again", "told:"
"""Keys of the records that hold the inbox rows which began the turn, or earlier ones that it asks
again; and, before a message's id, the words of one that it was told of while it ran."""
_read_rows = msgspec.json.Decoder(tuple[InboxRow, ...]).decode


def read_inbound(records: Iterable[Record]) -> tuple[InboxRow, ...]:
    """Return the inbox rows that a turn of these records began with, as far as they are known."""
    found = (one for one in records if isinstance(one, Noted) and one.key == INBOUND)
    record = next(found, None)
    return _read_rows(record.value) if record is not None else ()


def read_asked(records: Iterable[Record]) -> tuple[InboxRow, ...]:
    """Return the rows of the turn's request, as far as they are known: of one that asks again,
    those of the first, with the words that it asks."""
    known = tuple(records)
    found = (one for one in known if isinstance(one, Noted) and one.key == AGAIN)
    record = next(found, None)
    return _read_rows(record.value) if record is not None else read_inbound(known)


def read_told(records: Iterable[Record], message: str) -> str:
    """Return the words of a message that the turn was told of while it ran, "" if it was not."""
    key = f"{TOLD}{message}"
    found = (one for one in records if isinstance(one, Noted) and one.key == key)
    record = next(found, None)
    return msgspec.json.decode(record.value, type=str) if record is not None else ""


def note_brief(brief: Brief) -> Began:
    """Make the first record of each turn."""
    return Began(key="began", value=msgspec.Raw(msgspec.json.encode(brief)))


def read_brief(records: Iterable[Record]) -> Brief:
    """The brief that a turn began with."""
    for record in records:
        if isinstance(record, Began):
            return msgspec.json.decode(record.value, type=Brief)
    raise ValueError("a turn without a start")


def name_retry(brief: Brief, retry: PlanRetry | None, language: str) -> Brief:
    """The brief of a turn that tries a plan again: it keeps the plan's title."""
    if retry is None:
        return brief
    title = say("plan_try", language, title=retry.title, n=retry.tries)
    return replace(brief, title=title, first_title=retry.title, tries=retry.tries)


def read_retry(brief: Brief) -> PlanRetry | None:
    """The try that the turn of this brief is, if it is one."""
    return PlanRetry(title=brief.first_title, tries=brief.tries) if brief.tries else None


def size(rows: list[tuple[Message, ...]]) -> int:
    """Characters of transcript rows."""
    return sum(
        len(getattr(part, "text", "") or getattr(part, "content", ""))
        for row in rows
        for message in row
        for part in message.parts
    )
