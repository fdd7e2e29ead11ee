"""A feature: what it adds to the conversations, and what it is handed there.

The conversations' code knows features by these values alone. A feature changes a conversation by
its `Context`, and never sees the session that runs it; it imports no other feature.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeAlias, TypeVar, cast

from msgspec import Struct

from agent_core.journal import Stopped
from agent_core.messages import Message
from agent_core.orchestration.brief import Brief, Hands, TurnResult
from agent_core.scope import Scope
from gateway.access.access import Access
from gateway.conversation.agent import TurnMaker
from gateway.conversation.inbox.reading import TurnInput
from gateway.conversation.services import Services
from gateway.conversation.state import ConversationState
from gateway.conversation.thread import ConversationHistory
from gateway.conversation.turns import OpenTurn
from gateway.delivery.fold import ViewFold
from gateway.messages import (
    ButtonPressed,
    CommandGiven,
    FormSubmitted,
    Inbound,
    Press,
    Sender,
)
from gateway.roles import Role, at_least
from gateway.store.rows import InboxRow, Thread, TurnRow
from gateway.texts import Key, say

Change = Callable[[TurnRow], TurnRow]
Pressed: TypeAlias = ButtonPressed | FormSubmitted
P = TypeVar("P", bound=Press)
In = TypeVar("In", bound=Inbound)


class Turns(Protocol):
    """The turns of one conversation, as the session runs them."""

    @property
    def history(self) -> ConversationHistory:
        """What the model sees of the conversation."""

    async def open(self, turn_id: str) -> OpenTurn:
        """The turn with its records and views, from memory or from the store."""

    async def start(
        self,
        row: TurnRow,
        asked: TurnInput,
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

    def fold(self, row: TurnRow) -> ViewFold:
        """An empty fold for a turn's views."""


class Context(Struct, frozen=True, kw_only=True):
    """What a feature works with in one conversation."""

    state: ConversationState
    turns: Turns
    services: Services


# ---- commands ------------------------------------------------------------------------------


class Call(Struct, frozen=True, kw_only=True):
    """One command as it was given, in the inbox row `seq`. `commands`: all that there are."""

    context: Context
    command: CommandGiven
    role: Role
    seq: int
    commands: "Mapping[str, Command]"

    @property
    def words(self) -> list[str]:
        """The arguments, split at spaces."""
        return self.command.arguments.split()

    @property
    def language(self) -> str:
        """The language of who gave it."""
        return self.command.sender.language


class Command(Struct, frozen=True, kw_only=True):
    """`run` returns the answer, "" if it has answered already. `least`: the role it needs.
    `help` says in a language what it does, for menus."""

    name: str
    run: Callable[[Call], Awaitable[str]]
    help: Callable[[str], str]
    least: Role = "user"


def own_command(name: str, run: Callable[[Call], Awaitable[str]], least: Role = "user") -> Command:
    """Make a command of ours: its help is the text `command_<name>`."""
    return Command(name=name, run=run, help=partial(say, cast(Key, f"command_{name}")), least=least)


def is_allowed(access: Access, role: Role | None, command: Command) -> bool:
    """This role may give the command: by the settings' rights, else by its own least role."""
    return at_least(role, access.policy.rights.get(command.name, command.least))


# ---- presses and inbound values ------------------------------------------------------------


class PressHandler(Struct, frozen=True, kw_only=True):
    """Carries out the presses of one type."""

    kind: type[Struct]
    handle: Callable[[Context, InboxRow, Pressed, Press], Awaitable[None]]


class InboundHandler(Struct, frozen=True, kw_only=True):
    """Takes up the inbox rows of one type, or leaves them in the queue."""

    kind: type[Struct]
    handle: Callable[[Context, InboxRow, Inbound], Awaitable[None]]


class Beginner(Struct, frozen=True, kw_only=True):
    """Begins the turn of a row of one type that waits longest; it takes the row out of the queue.
    No turn if there is nothing to do."""

    kind: type[Struct]
    begin: Callable[[Context, InboxRow, Inbound], Awaitable[OpenTurn | None]]


def on_press(
    kind: type[P], handle: Callable[[Context, InboxRow, Pressed, P], Awaitable[None]]
) -> PressHandler:
    """Let `handle` carry out the presses of a type."""

    async def handle_press(context: Context, row: InboxRow, pressed: Pressed, press: Press) -> None:
        assert isinstance(press, kind)
        await handle(context, row, pressed, press)

    return PressHandler(kind=kind, handle=handle_press)


def on_inbound(
    kind: type[In], handle: Callable[[Context, InboxRow, In], Awaitable[None]]
) -> InboundHandler:
    """Let `handle` take up the inbox rows of a type."""

    async def handle_inbound(context: Context, row: InboxRow, inbound: Inbound) -> None:
        assert isinstance(inbound, kind)
        await handle(context, row, inbound)

    return InboundHandler(kind=kind, handle=handle_inbound)


def on_queued(
    kind: type[In], begin: Callable[[Context, InboxRow, In], Awaitable[OpenTurn | None]]
) -> Beginner:
    """Let `begin` begin the turns of rows of a type."""

    async def begin_turn(context: Context, row: InboxRow, inbound: Inbound) -> OpenTurn | None:
        assert isinstance(inbound, kind)
        return await begin(context, row, inbound)

    return Beginner(kind=kind, begin=begin_turn)


# ---- turns -----------------------------------------------------------------------------------

AddToBrief = Callable[[Brief, Thread, TurnInput], Brief]
"""Adds to a turn's brief, which is recorded then; given what the model sees already."""
OnBegin = Callable[[Context, TurnRow], Awaitable[AddToBrief | None]]
"""Reads what a new turn is to know."""
TurnCode = Callable[[Scope, tuple[Message, ...], tuple[Message, ...]], Awaitable[TurnResult]]
"""A turn's code over its scope, the history and its own past messages."""


class FiredTurns(Struct, frozen=True, kw_only=True):
    """The turns that a due time began: their views, their code, their end, and what becomes of a
    report that its chat refuses. Turns of messages never come here."""

    fold: Callable[[TurnRow], ViewFold]
    code: Callable[[TurnMaker, OpenTurn, Hands], TurnCode]
    end: Callable[[Context, TurnRow], None]
    give_up_report: Callable[[Services, str], None]


class Feature(Struct, frozen=True, kw_only=True):
    """What one feature adds. `begins`: how a turn begins that no message began."""

    name: str
    commands: tuple[Command, ...] = ()
    presses: tuple[PressHandler, ...] = ()
    inbounds: tuple[InboundHandler, ...] = ()
    begins: tuple[Beginner, ...] = ()
    on_begin: tuple[OnBegin, ...] = ()
    fired: FiredTurns | None = None


class Features:
    """All features of a gateway, by what they react to. `menu`: the commands' order for people;
    others follow. ValueError if two features react to the same."""

    def __init__(self, features: Sequence[Feature], menu: Sequence[str] = ()) -> None:
        commands: dict[str, Command] = {}
        self.presses: dict[type[Struct], PressHandler] = {}
        self.inbounds: dict[type[Struct], InboundHandler] = {}
        self.begins: dict[type[Struct], Beginner] = {}
        self.on_begin = tuple(hook for one in features for hook in one.on_begin)
        fired = [one.fired for one in features if one.fired is not None]
        self.fired = fired[0] if fired else None
        for one in features:
            _add(one, commands, {command.name: command for command in one.commands})
            _add(one, self.presses, {handler.kind: handler for handler in one.presses})
            _add(one, self.inbounds, {handler.kind: handler for handler in one.inbounds})
            _add(one, self.begins, {handler.kind: handler for handler in one.begins})
        first = [name for name in menu if name in commands]
        self.commands = {name: commands[name] for name in dict.fromkeys((*first, *commands))}


K = TypeVar("K")
V = TypeVar("V")


def _add(feature: Feature, known: dict[K, V], new: dict[K, V]) -> None:
    twice = known.keys() & new.keys()
    if twice:
        names = ", ".join(sorted(getattr(one, "__name__", str(one)) for one in twice))
        raise ValueError(f"{feature.name} adds what another feature has: {names}")
    known.update(new)
