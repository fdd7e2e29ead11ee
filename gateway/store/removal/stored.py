"""Everything stored of a conversation as bytes, for scans of all of it and changes in place."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Literal, NamedTuple, Protocol

StoredKind = Literal[
    "conversation", "turn", "record", "view", "question", "transcript", "letter", "message"
]
Edit = Callable[[bytes], bytes]


class Stored(NamedTuple):
    """One row. `key` identifies it within its kind and conversation; of a record it is the turn and
    n."""

    kind: StoredKind
    key: str
    body: bytes


class AuditLines(Protocol):
    """The audit as it is stored, the oldest line first, and the rows that say where it ends."""

    def read_audit(self) -> AsyncIterator[list[bytes]]:
        """Yield all lines in pieces; those of an unsettled commit come last."""

    def read_rows(self) -> AsyncIterator[tuple[str, bytes]]:
        """Yield all conversations with their own rows."""

    async def read_row(self, conversation: str) -> bytes | None:
        """A conversation's own row."""

    async def note(self, at: float, name: str, body: bytes, key: str, document: bytes) -> None:
        """Add a line that belongs to no conversation, together with the directory's document `key`
        about it. Idempotent."""


class Contents(AuditLines, Protocol):
    """The rows of conversations as they are stored. Writes are in pieces; who calls holds the
    conversation's lease."""

    def read_all(self, conversation: str) -> AsyncIterator[Stored]:
        """Yield all rows of a conversation."""

    async def write_all(self, conversation: str, rows: Sequence[Stored]) -> None:
        """Replace the bodies of these rows."""

    async def edit_messages(self, conversations: frozenset[str], edit: Edit) -> int:
        """Edit messages that are done but still kept for deduplication, and those of
        `conversations`. Return how many changed."""

    async def edit_audit(self, edit: Edit) -> int:
        """Change lines of the audit; how many were changed."""

    async def wipe(self, *, whole: bool) -> None:
        """Remove overwritten content from the files. `whole`: nobody else uses the store."""
