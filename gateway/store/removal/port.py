"""What is asked of a store to take a conversation out of it, whole and in pieces."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple, Protocol, TypeAlias

Mark: TypeAlias = Callable[[Sequence[bytes]], Awaitable[Collection[bytes]]]
"""Keeps what has to be known of lines of the audit that are about to go; those that may go now."""


class Position(NamedTuple):
    """Where a walk over conversations stands: the last one that was seen."""

    within: str = ""
    at: float = 0.0
    conversation: str = ""


class Removal(Protocol):
    """A conversation is marked in one write, and from then on nobody can take it. What it had
    then goes piece by piece; a cut-off removal is found by its mark. What arrives meanwhile waits,
    and begins the conversation anew."""

    async def find_idle(self, before: float, limit: int, after: Position) -> tuple[Position, ...]:
        """Conversations whose last message came before `before`, behind `after`. Some more."""

    async def begin(self, conversation: str, before: float | None) -> bool:
        """Mark it, if its last message came before `before`, nobody holds it and nothing in it is
        under way, parked, waiting or open. None: whatever it holds, if nobody holds it."""

    async def remove_piece(self, conversation: str) -> bool:
        """Take a small piece of a marked conversation away; whether there is more."""

    async def find_marked(self) -> tuple[str, ...]:
        """Conversations whose removal was begun and is not done."""

    async def drop_audit(self, before: float, mark: Mark) -> bool:
        """Take some lines of the audit that are older away, those that `mark` lets go; whether
        there may be more."""
