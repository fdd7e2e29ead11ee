"""The session as its outbox sees it."""

from collections.abc import Awaitable
from typing import Literal, Protocol, TypeAlias

from gateway.store.rows import Changes, OutboxRow

Key: TypeAlias = tuple[str, str]
"""(turn, name) of a view."""

Cause = Literal["doubt", "failed", "refused", "unsent"]
"""The reason why a view is given up: unknown whether its message arrived; it cannot be rendered or
its adapter fails; the platform refuses it; the platform was unreachable for too long."""


class Holder(Protocol):
    """The session that owns this outbox."""

    language: str

    def keep(self, changes: Changes) -> Awaitable[object]:
        """Queue a commit of marks in this very step; it fails quietly into the session."""

    def preview(self, key: Key) -> OutboxRow:
        """A row for a reply that grows before there is anything to commit."""

    def find_origin(self, turn: str) -> str:
        """Return a name of what the turn comes from, `turn` if it is not known."""

    def may_repeat(self, turn: str) -> bool:
        """Return True if a holder that the store has forgotten may have sent what `turn` sends."""

    def may_send(self, seconds: float) -> bool:
        """The lease is ours for longer than `seconds`."""

    def count(self, name: str) -> None:
        """Add to a counter that /metrics shows."""

    def set_aside(self, row: OutboxRow, cause: Cause, why: str) -> None:
        """Give up this version of a view: keep it for the operator, and tell the person unless an
        older state of it is in the chat."""

    def note_limit(self, seconds: float) -> None:
        """The platform wants to hear nothing for that long: known after a restart too."""

    async def note_closed(self, why: str) -> None:
        """Note that the agent may no longer write in the chat. StoreFailed."""

    def note_delivery(self) -> None:
        """Note that something was delivered, so that the session checks whether it is done."""
