"""What the gateway asks of its store. SQLite and Redis both pass one contract suite.

A commit is the only way to write a conversation; it is refused with Fenced if the lease's token
is not the newest. All calls raise StoreFailed if nothing was kept.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from agent_core.journal import Record
from gateway.messages import Inbound
from gateway.ports import Shown, Summary
from gateway.store.rows import (
    Accepted,
    AuditRow,
    Changes,
    InboxRow,
    Lease,
    Opened,
    OutboxRow,
    QuestionRow,
    Thread,
    TranscriptRow,
    TurnRow,
)


class Inbox(Protocol):
    """Inbound values: stored and deduplicated before a platform gets its acknowledgement."""

    async def accept(self, inbounds: Sequence[Inbound]) -> tuple[Accepted, ...]:
        """Keep `inbounds` in one commit, in order; known ones (24 h, by event and by message)
        are marked not fresh and change nothing."""

    async def arrivals(self, conversation: str, after: int) -> tuple[InboxRow, ...]:
        """Waiting rows of the conversation with a `seq` above `after`, in order."""

    async def dead_letters(self, limit: int) -> tuple[InboxRow, ...]:
        """Rows given up, newest first, with their payload."""

    async def resubmit(self, seq: int) -> str | None:
        """Make a dead letter wait again; its conversation, None if there is none."""


class Leases(Protocol):
    """Who may write a conversation."""

    async def acquire(self, conversation: str, owner: str, ttl: float) -> Opened | None:
        """Take the conversation for `ttl` seconds with a new token, and what its holder needs.
        None while another owner holds it. An owner takes back its own lease."""

    async def take_in(
        self, inbounds: Sequence[Inbound], free: frozenset[str], owner: str, ttl: float
    ) -> tuple[tuple[Accepted, ...], tuple[Opened, ...]]:
        """As `accept`, and where a store can do both in one commit, as `acquire` for those of the
        conversations `free` that got something new. `free`: `owner` has no session for them."""

    async def renew(self, leases: Sequence[Lease], ttl: float) -> frozenset[str]:
        """Hold on for `ttl` more seconds; the conversations that are still ours."""

    def release(self, lease: Lease, seen: int, changes: Changes) -> asyncio.Future[bool]:
        """Queue, in this very step: commit `changes` and let go. False, and still held, if an inbox row newer than `seen`
        exists, a view is unsent or a turn is running."""

    async def give_back(self, lease: Lease) -> None:
        """Let go of a conversation that has work left, so that the next owner finds it."""

    async def work(self, owner: str) -> tuple[str, ...]:
        """Conversations with work that `owner` may take: rows not looked at, leases not
        released that are its own or have run out."""

    def submit(self, lease: Lease, changes: Changes) -> asyncio.Future[None]:
        """Queue one atomic write at once (in this very step) and return what is done when it
        stands. Writes of one lease are applied in the order queued; after a failed one every
        later one of the same token fails too."""


class Reads(Protocol):
    """What is read besides a new lease's `Opened`."""

    async def records(self, turn: str) -> tuple[Record, ...]:
        """A turn's journal in commit order."""

    async def turn(self, turn: str) -> TurnRow | None:
        """A turn without its records."""

    async def outbox(self, conversation: str, turn: str) -> tuple[OutboxRow, ...]:
        """A turn's views with what the platform has of them; () if it is not of `conversation`,
        for a turn may be named by who pressed a button."""

    async def views(
        self, conversation: str, after: int, limit: int, *, latest: bool = False
    ) -> tuple[Shown, ...]:
        """Views changed after rev `after`, by rev; or the `latest` ones by position."""

    async def conversations(self, prefix: str, limit: int, words: str = "") -> tuple[Summary, ...]:
        """Conversations whose address begins with `prefix`, newest first; with `words` those of
        the newest MOST_SEARCHED that hold them (gateway.store.search)."""

    async def audit(self, limit: int) -> tuple[AuditRow, ...]:
        """The newest lines of the audit."""


class Archive(Protocol):
    """What was said: all of it by rows, and in one document what the model sees."""

    async def thread(self, conversation: str) -> Thread:
        """What was last committed as the conversation's thread."""

    async def transcript(
        self, conversation: str, start: int, end: int
    ) -> tuple[TranscriptRow, ...]:
        """The transcript's rows `start` (included) to `end` (not included)."""

    async def newest(self, conversation: str, limit: int) -> tuple[TranscriptRow, ...]:
        """The transcript's last rows, in order."""


class Questions(Protocol):
    """Open questions, wherever they were asked."""

    async def find(self, question: str) -> tuple[str, QuestionRow] | None:
        """(conversation, row) of a question."""

    async def due(self, now: float, limit: int) -> tuple[tuple[str, QuestionRow], ...]:
        """Open questions for which the moment to do something (`QuestionRow.due`) has come."""

    async def next_due(self) -> float | None:
        """The nearest `QuestionRow.due` of an open question, seconds since 1970."""


class Directory(Protocol):
    """Small documents by key: people, pairing codes, secrets of this gateway."""

    async def get(self, key: str) -> bytes | None: ...

    async def put(self, key: str, body: bytes | None, expected: bytes | None = None) -> bool:
        """Write (None: remove). With `expected`, only if the document still is that (b"": is
        not there); whether it was written."""

    async def keys(self, prefix: str) -> tuple[str, ...]: ...


class Store(Inbox, Leases, Reads, Archive, Questions, Directory, Protocol):
    """All ports in one object."""

    async def sweep(self, now: float) -> int:
        """Drop what is past its time (deduplication ids 24 h, journals 30 days); how much."""

    async def close(self) -> None: ...
