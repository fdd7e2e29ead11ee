"""What an outbox needs of the session that owns it."""

from collections.abc import Awaitable
from typing import Literal, Protocol, TypeAlias

from gateway.store.rows import Changes, OutboxRow

Key: TypeAlias = tuple[str, str]
"""(turn, name) of a view."""

Cause = Literal["doubt", "failed", "refused", "unsent"]
"""Why a view is not tried any more: nobody knows whether its message arrived; it cannot be drawn
or its adapter fails; the platform refuses it; the platform could not be reached for very long."""


class Holder(Protocol):
    """The session that owns this outbox."""

    language: str

    def keep(self, changes: Changes) -> Awaitable[object]:
        """Queue a commit of marks in this very step; it fails quietly into the session."""

    def preview(self, key: Key) -> OutboxRow:
        """A row for a reply that grows before there is anything to commit."""

    def may_send(self, seconds: float) -> bool:
        """The lease is ours for longer than `seconds`."""

    def count(self, name: str) -> None:
        """Add to a counter that /metrics shows."""

    def set_aside(self, row: OutboxRow, cause: Cause, why: str) -> None:
        """This version of a view is not tried any more: keep it for the operator, and tell the
        person where no older state of it stands in the chat."""

    def note_limit(self, seconds: float) -> None:
        """The platform wants to hear nothing for that long: known after a restart too."""

    async def note_closed(self, why: str) -> None:
        """The platform lets us write in the chat no more. StoreFailed."""

    def note_delivery(self) -> None:
        """Something was delivered: look whether all is done."""
