"""The port by which conversations are removed from a store, whole and in pieces."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple, Protocol, TypeAlias

Mark: TypeAlias = Callable[[Sequence[bytes]], Awaitable[Collection[bytes]]]
"""Seals audit lines that are about to be dropped; returns those that may be dropped now."""


class Position(NamedTuple):
    """The position of a walk over conversations: the last one visited."""

    within: str = ""
    at: float = 0.0
    conversation: str = ""


class Removal(Protocol):
    """A conversation is marked in one write, and from then on nobody can acquire it. Its content is
    removed piece by piece; an interrupted removal is found by its mark. What arrives meanwhile
    waits, and begins the conversation anew."""

    async def find_idle(self, before: float, limit: int, after: Position) -> tuple[Position, ...]:
        """Return some conversations after `after` whose last message came before `before`."""

    async def begin(self, conversation: str, before: float | None) -> bool:
        """Mark it if its last message came before `before`, nobody holds it, and nothing in it is
        running, parked, waiting or open. None: mark it if nobody holds it."""

    async def remove_piece(self, conversation: str) -> bool:
        """Take a small piece of a marked conversation away; whether there is more."""

    async def find_marked(self) -> tuple[str, ...]:
        """Return conversations whose removal has begun and is not finished."""

    async def drop_audit(self, before: float, mark: Mark) -> bool:
        """Drop some older audit lines that `mark` releases. Return True if there may be more."""
