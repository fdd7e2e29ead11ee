"""Everything that is stored of a conversation as bytes, for who has to look through all of it, and
ways to change it in place."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Literal, NamedTuple, Protocol

StoredKind = Literal[
    "conversation", "turn", "record", "view", "question", "transcript", "letter", "message"
]
Edit = Callable[[bytes], bytes]


class Stored(NamedTuple):
    """One row. `key` names it within its kind and conversation, for a record its turn and n."""

    kind: StoredKind
    key: str
    body: bytes


class AuditLines(Protocol):
    """The audit as it is stored, the oldest line first, and the rows that say where it ends."""

    def read_audit(self) -> AsyncIterator[list[bytes]]:
        """All lines, in pieces; those of a commit that is not settled yet come at the end."""

    def read_rows(self) -> AsyncIterator[tuple[str, bytes]]:
        """All conversations with their own rows."""

    async def read_row(self, conversation: str) -> bytes | None:
        """A conversation's own row."""

    async def note(self, at: float, name: str, body: bytes, key: str, document: bytes) -> None:
        """Add a line that belongs to no conversation, and put the directory's document `key`, which
        tells of it. A second time changes nothing."""


class Contents(AuditLines, Protocol):
    """The rows of conversations as they are stored. Writes are in pieces; who calls holds the
    conversation's lease."""

    def read_all(self, conversation: str) -> AsyncIterator[Stored]:
        """All rows of a conversation."""

    async def write_all(self, conversation: str, rows: Sequence[Stored]) -> None:
        """Put other bodies in the place of what these rows hold."""

    async def edit_messages(self, conversations: frozenset[str], edit: Edit) -> int:
        """Change messages that are done with and still known, and those of `conversations`; how
        many were changed."""

    async def edit_audit(self, edit: Edit) -> int:
        """Change lines of the audit; how many were changed."""

    async def wipe(self, *, whole: bool) -> None:
        """Leave nothing of what was written over in files. `whole`: nobody else works on it."""
