"""What an outbox needs of the session that owns it."""

from collections.abc import Awaitable
from typing import Protocol, TypeAlias

from gateway.store.rows import Changes, OutboxRow

Key: TypeAlias = tuple[str, str]
"""(turn, name) of a view."""


class Holder(Protocol):
    """The session that owns this outbox."""

    language: str

    def keep(self, changes: Changes) -> Awaitable[object]:
        """Queue a commit of marks in this very step; it fails quietly into the session."""

    def preview(self, key: Key) -> OutboxRow:
        """A row for a reply that grows before there is anything to commit."""

    def may_send(self, seconds: float) -> bool:
        """The lease is ours for longer than `seconds`."""

    def refused(self, key: Key, why: str) -> None:
        """The platform will never take this view."""

    def limited(self, seconds: float) -> None:
        """The platform wants to hear nothing for that long: known after a restart too."""

    def settled(self) -> None:
        """Something was delivered: look whether all is done."""
