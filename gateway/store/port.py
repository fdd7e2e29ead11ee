"""The gateway's store. SQLite and Redis both pass one contract suite.

A commit is the only way to write a conversation; it is refused with Fenced if the lease's token is
not the newest. All calls raise StoreFailed if nothing was stored; Unstorable if that is because of
the content. An unreadable row concerns itself alone: `Opened.damaged` has those of a conversation,
lists leave them out, and a single row raises Unreadable.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from agent_core.journal import Record
from gateway.messages import Inbound
from gateway.ports import ListScope, Shown, Summary
from gateway.store.rows import (
    AcceptedRow,
    AcquiredConversation,
    AuditRow,
    Changes,
    ConversationSettings,
    InboxRow,
    Lease,
    Letter,
    OutboxRow,
    QuestionRow,
    Spans,
    Thread,
    TranscriptRow,
    TurnRow,
)
from gateway.store.spending.expenses import Budgets

PROBED = b"1" * 16_384
"""Written to test a store: as long as a message's rows, since less may still fit on a full disk."""


class Inbox(Protocol):
    """Inbound values: stored and deduplicated before a platform gets its acknowledgement."""

    async def accept(self, inbounds: Sequence[Inbound]) -> tuple[AcceptedRow, ...]:
        """Keep `inbounds` in one commit, in order; known ones (24 h, by event and by message)
        are marked not fresh and change nothing."""

    async def arrivals(self, conversation: str, after: int) -> tuple[InboxRow, ...]:
        """Waiting rows of the conversation with a `seq` above `after`, in order."""


class Letters(Protocol):
    """Content set aside until an operator decides about it."""

    async def letters(self, limit: int) -> tuple[Letter, ...]:
        """The newest dead letters."""

    async def keep_letter(self, letter: Letter) -> None:
        """Store a letter about something that is in no table."""

    async def resubmit(self, name: str) -> str | None:
        """Make a letter's content work again and delete the letter. Return its conversation, None
        if there is no such letter or it cannot be resubmitted."""

    async def drop(self, name: str) -> bool:
        """Delete a letter with its payload. Return False if there is none."""


class Leases(Protocol):
    """Leases on conversations. They expire by the store's own clock, never by their holders'
    clocks."""

    async def acquire(
        self, conversation: str, owner: str, ttl: float
    ) -> AcquiredConversation | None:
        """Take the conversation for `ttl` seconds with a new token. Return its content for the
        holder, None while another owner holds it. An owner may take over its own lease."""

    async def take_in(
        self, inbounds: Sequence[Inbound], free: frozenset[str], owner: str, ttl: float
    ) -> tuple[tuple[AcceptedRow, ...], tuple[AcquiredConversation, ...]]:
        """Accept messages, and, where a store can do both in one commit, acquire those of the
        conversations `free` that got something new. `free`: `owner` has no session for them."""

    async def renew(self, leases: Sequence[Lease], ttl: float) -> frozenset[str]:
        """Hold on for `ttl` more seconds; the conversations that are still ours."""

    def release(self, lease: Lease, seen: int, changes: Changes) -> asyncio.Future[bool]:
        """Queue, in this very step: commit `changes` and let go. False, and still held, if an inbox
        row newer than `seen` exists, a view is unsent or a turn is running."""

    async def give_back(self, lease: Lease) -> None:
        """Release a conversation that has work left, so that the next owner finds it."""

    async def work(self, owner: str) -> tuple[tuple[str, int], ...]:
        """Return (conversation, newest `seq`) of conversations with unseen rows or an unreleased
        lease that nobody but `owner` holds: those that `owner` may take, and those it has."""

    def submit(self, lease: Lease, changes: Changes) -> asyncio.Future[None]:
        """Queue one atomic write without awaiting, and return a future of its completion.

        Writes of one lease are applied in the order queued; after a failed one every later one of
        the same token fails too.
        """


class Reads(Protocol):
    """Reads beside a new lease's `AcquiredConversation`."""

    async def records(self, turn: str) -> tuple[Record, ...]:
        """A turn's journal in commit order."""

    async def turn(self, turn: str) -> TurnRow | None:
        """A turn without its records."""

    async def outbox(self, conversation: str, turn: str) -> tuple[OutboxRow, ...]:
        """Return a turn's views with the platform's state; () if it is not of `conversation`, as
        the presser of a button may name any turn."""

    async def views(self, conversation: str, after: int, limit: int) -> tuple[Shown, ...]:
        """Views changed after rev `after`, by rev."""

    async def latest(self, conversation: str, limit: int, before: int = 0) -> tuple[Shown, ...]:
        """Return the last views by position, in order; with `before`, only views below that
        position."""

    async def summary(self, conversation: str) -> Summary | None:
        """Return one conversation as lists show it, None if it does not exist."""

    async def recent(self, scope: ListScope, limit: int, words: str = "") -> tuple[Summary, ...]:
        """Return the conversations of a list, newest first; with `words` those of the newest
        MAX_SEARCHED that contain them (gateway.store.search)."""

    async def audit(self, limit: int) -> tuple[AuditRow, ...]:
        """The newest lines of the audit."""


class Archive(Protocol):
    """The transcript, a row for each turn, and the settings of a conversation."""

    async def locate(self, turn: str) -> str:
        """Return the conversation of a turn, "" if there is no such turn."""

    async def settings(self, conversation: str) -> ConversationSettings:
        """The settings chosen in the conversation; the default ones if it does not exist."""

    async def thread(self, conversation: str, spans: Spans) -> Thread:
        """The messages of the transcript's rows `spans`, a tuple for each row."""

    async def transcript(
        self, conversation: str, start: int, end: int
    ) -> tuple[TranscriptRow, ...]:
        """The transcript's rows `start` (included) to `end` (not included)."""

    async def newest(self, conversation: str, limit: int) -> tuple[TranscriptRow, ...]:
        """The transcript's last rows, in order."""

    async def find_holding(
        self, conversations: Sequence[str], words: frozenset[str], limit: int
    ) -> tuple[tuple[str, tuple[TranscriptRow, ...]], ...]:
        """Return the last `limit` transcript rows of each conversation in which all of the folded
        `words` occur, in the order given. May include false matches: check again."""


class Questions(Protocol):
    """Open questions of all conversations."""

    async def find(self, question: str) -> tuple[str, QuestionRow] | None:
        """(conversation, row) of a question."""

    async def due(
        self, now: float, limit: int, after: tuple[str, QuestionRow] | None = None
    ) -> tuple[tuple[str, QuestionRow], ...]:
        """Return open questions whose `QuestionRow.due` has come, in that order. `after`: the last
        one of the page before."""

    async def next_due(self, after: float = 0.0) -> float | None:
        """The nearest `QuestionRow.due` of an open question behind `after`, seconds since 1970."""


class Directory(Protocol):
    """Small documents by key: people, pairing codes, secrets of this gateway."""

    async def get(self, key: str) -> bytes | None: ...

    async def put(self, key: str, body: bytes | None, expected: bytes | None = None) -> bool:
        """Write (None: remove). With `expected`, only if the document still is that (b"": is
        not there); whether it was written."""

    async def keys(self, prefix: str) -> tuple[str, ...]: ...


class Store(Inbox, Letters, Leases, Reads, Archive, Questions, Directory, Budgets, Protocol):
    """All ports in one object."""

    @property
    def failed(self) -> str:
        """The reason why nothing can be stored until a restart, "" while all is well."""

    async def now(self) -> float:
        """Return the store's clock, seconds since 1970: the same for all that share it, so that due
        times are judged once."""

    async def sweep(self, now: float, journals: float | None = 30 * 86_400.0) -> int:
        """Delete expired rows (deduplication ids after 24 h, journals of ended turns after
        `journals` seconds, None never) in small portions. Return how many, 0 when none is left."""

    async def close(self) -> None: ...
