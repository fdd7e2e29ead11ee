"""What a feature is handed: the conversation's state, its turns, and what all sessions share.

A feature changes a conversation by these alone, and never sees the session that holds them.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from msgspec import Struct

from agent_core.journal import Stopped
from gateway.history.thread import History
from gateway.messages import CommandGiven, Sender
from gateway.people.roles import Role
from gateway.present import Fold
from gateway.sessions.reading import Asked
from gateway.sessions.services import Services
from gateway.sessions.state import ConversationState
from gateway.sessions.turns import OpenTurn
from gateway.store.rows import InboxRow, TurnRow

Change = Callable[[TurnRow], TurnRow]


class Turns(Protocol):
    """The turns of one conversation, as the session runs them."""

    @property
    def history(self) -> History:
        """What the model sees of the conversation."""

    async def open(self, turn_id: str) -> OpenTurn:
        """The turn with its records and views, from memory or from the store."""

    async def start(
        self,
        row: TurnRow,
        asked: Asked,
        done: tuple[int, ...],
        *,
        rows: Sequence[InboxRow] = (),
        prepare: Callable[[], None] | None = None,
    ) -> OpenTurn:
        """Make a new turn; it enters the store with its first commit, and its inbox rows `done`
        end with that. `rows`: what it begins with, kept for the case that it cannot end.
        `prepare` is called once nothing is awaited any more: what it stages is in that commit."""

    async def begin_next(self, change: Change | None = None) -> OpenTurn | None:
        """Begin a turn with what waits longest, its row as `change` makes it; None if nothing
        waits or not all of it is there."""

    def close(self, open_turn: OpenTurn, record: Stopped, done: tuple[int, ...] = ()) -> None:
        """End the turn from outside with one commit, which ends the inbox rows `done` too."""

    async def stop(self, sender: Sender, reason: str, done: tuple[int, ...]) -> bool:
        """End the running turn; False if none runs. A stop after the final commit is late."""

    async def stop_parked(self, sender: Sender) -> int:
        """End all parked turns; how many."""

    def fold(self, row: TurnRow) -> Fold:
        """An empty fold for a turn's views."""


class Context(Struct, frozen=True, kw_only=True):
    """What a feature works with in one conversation."""

    state: ConversationState
    turns: Turns
    services: Services


class Call(Struct, frozen=True, kw_only=True):
    """One command as it was given, in the inbox row `seq`."""

    context: Context
    command: CommandGiven
    role: Role
    seq: int

    @property
    def words(self) -> list[str]:
        """The arguments, split at spaces."""
        return self.command.arguments.split()

    @property
    def language(self) -> str:
        """The language of who gave it."""
        return self.command.sender.language


class Command(Struct, frozen=True, kw_only=True):
    """`run` returns the answer, "" if it has answered already. `least`: the role it needs."""

    name: str
    run: Callable[[Call], Awaitable[str]]
    least: Role = "user"
