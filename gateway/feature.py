"""A feature: what it adds to conversations, and the context it works with.

The conversation's code knows features only by these values. A feature changes a conversation
through its `Context`, never sees the session that runs it, and imports no other feature.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Never, Protocol, TypeAlias, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from agent_core import ambient
from agent_core.events import AgentEvent
from agent_core.journal import Stopped
from agent_core.messages import Message
from agent_core.orchestration.brief import Brief, Hands, TurnResult
from agent_core.scope import Scope
from agent_core.text import parse_number
from gateway.access.access import Access
from gateway.command_texts import OwnText, name_command, take_word
from gateway.conversation.agent import TurnMaker
from gateway.conversation.inbox.reading import TurnInput
from gateway.conversation.quotas import refuse_turn
from gateway.conversation.services import Services
from gateway.conversation.state import ConversationState
from gateway.conversation.thread import ConversationHistory
from gateway.conversation.turns import OpenTurn
from gateway.declaration import Setting
from gateway.delivery.fold import OWN_EVENTS, EventFolds, FoldEvent, ViewFold
from gateway.messages import (
    ButtonPressed,
    CommandGiven,
    FormSubmitted,
    Inbound,
    MessageReceived,
    PluginPress,
    Press,
    Sender,
    StopPressed,
)
from gateway.roles import Role, at_least, say_refused
from gateway.store.rows import Changes, InboxRow, OutboxRow, Thread, TurnRow
from gateway.texts import Key, say
from gateway.texts.languages import Texts
from gateway.views import ActivityNote, ChoiceCard, View

Change = Callable[[TurnRow], TurnRow]
Pressed: TypeAlias = ButtonPressed | FormSubmitted
P = TypeVar("P", bound=Press)
In = TypeVar("In", bound=Inbound)
E = TypeVar("E", bound=AgentEvent)
K = TypeVar("K")
V = TypeVar("V")


class Turns(Protocol):
    """The turns of one conversation, as the session runs them."""

    @property
    def history(self) -> ConversationHistory:
        """The conversation as the model sees it."""

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
        """Create a turn. It is stored with its first commit, which also ends the inbox rows `done`.

        `rows`: its first messages, kept in case it cannot end. `prepare` is called after the last
        await; what it stages is part of that commit.
        """

    async def begin_next(self, change: Change | None = None) -> OpenTurn | None:
        """Begin a turn with the message that has waited longest, its row passed through `change`.
        Return None if nothing waits or the message is incomplete."""

    def close(self, open_turn: OpenTurn, record: Stopped, done: tuple[int, ...] = ()) -> None:
        """End the turn from outside with one commit, which ends the inbox rows `done` too."""

    async def may_stop(self, sender: Sender) -> bool:
        """Return True if the sender may end the running and waiting work: it is their own, by any
        linked account, or they are an admin. True if there is none."""

    async def stop(self, sender: Sender, reason: str, done: tuple[int, ...]) -> bool:
        """End the running turn. Return False if none runs or the sender may not end it; a stop
        after the final commit is too late."""

    async def stop_parked(self, sender: Sender) -> int:
        """End all parked turns that are the sender's to end; how many."""

    async def stop_waiting_scripts(self, sender: Sender) -> int:
        """End the sender's parked turns that still hold resources in this process; return how
        many."""

    def fold(self, row: TurnRow) -> ViewFold:
        """An empty fold for a turn's views."""


class Context(Struct, frozen=True, kw_only=True):
    """The services and state of one conversation that a feature works with."""

    state: ConversationState
    turns: Turns
    services: Services
    commands: "Mapping[str, Command]" = {}
    """All commands, by name."""

    def find_meaning(self, text: str, role: Role | None) -> "Meaning | None":
        """Return the message that the command `text` stands for; None if it is none, or not for
        this role."""
        command = self.find_command(text)
        if command is None or not is_allowed(self.services.access, role, command):
            return None
        return command.mean(take_word(text)[1])

    def find_command(self, text: str) -> "Command | None":
        """Return the command that `text` gives, None if there is none of its name."""
        name = take_word(text)[0].lower()
        return self.commands.get(name[1:]) if name.startswith("/") else None

    def read(self, setting: Setting[V]) -> V:
        """The value of a setting that a feature declares."""
        return setting.read(self.services.feature_env)

    def draw(self, seq: int, name: str, view: View) -> OutboxRow:
        """Make a new view for the inbox row `seq`, to be committed at once. `name` distinguishes it
        from other views of that row."""
        return self.state.want(f"row-{seq}", name, view, 1, final=True)

    async def redraw(self, seq: int, name: str, view: View) -> tuple[OutboxRow, ...]:
        """Replace that view by `view`, to be committed at once. Return () if it was never drawn or
        is unchanged."""
        return await self.state.redraw(f"row-{seq}", name, lambda _: view)

    def finish(self, seq: int, *views: OutboxRow) -> None:
        """End the inbox row `seq` in one commit; the views are shown once it is stored."""
        self.state.show(Changes(done=(seq,), views=views, row=self.state.row))

    def refuse(self, row: InboxRow, why: str) -> bool:
        """End the row with the reason, told to its person alone where the platform can. False, with
        nothing done, for words that are not addressed to the agent."""
        match inbound := row.inbound:
            case ButtonPressed() | FormSubmitted() | StopPressed():
                self.state.acknowledge(row.seq, inbound.press, why)
            case CommandGiven(addressed=True) if press := inbound.press or inbound.aside:
                self.state.acknowledge(row.seq, press, why)
            case MessageReceived(addressed=True) | CommandGiven(addressed=True):
                self.state.notice(row.seq, why, "warning")
            case _:
                return False
        return True

    async def replace_list(self, row: InboxRow, pressed: "Pressed", place: str, text: str) -> None:
        """Replace the list whose button was pressed by `text`, sent as a new message if the list is
        gone. `place`: the list's inbox row and name, as in `7.found`."""
        listed, _, name = place.partition(".")
        card = ChoiceCard(question="", text=text, language=pressed.sender.language)
        seq = parse_number(listed)
        shown = () if seq is None else await self.redraw(seq, name, card)
        if shown:
            self.finish(row.seq, *shown)
        else:
            self.state.notice(row.seq, text)
        self.state.tell(pressed.press, "")


# ---- commands ------------------------------------------------------------------------------


class Call(Struct, frozen=True, kw_only=True):
    """One command as given in the inbox row `seq`. `commands`: all that exist."""

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
    def option(self) -> str:
        """The first of the arguments in lower case, "" if there is none."""
        return self.words[0].lower() if self.words else ""

    @property
    def language(self) -> str:
        """The language of who gave it."""
        return self.command.sender.language

    async def queue_message(self, text: str, command: str = "") -> str:
        """Queue `text` as a message of the command's sender; return "" or the reason why not.
        `command`: run for it instead of asking a model."""
        given, context = self.command, self.context
        if refused := await refuse_turn(context.services, given):
            return refused
        message = MessageReceived(
            conversation=given.conversation,
            sender=given.sender,
            event=given.event,
            message=given.message,
            text=text,
            command=command,
        )
        context.state.queue.append(InboxRow(seq=self.seq, at=ambient.now(), inbound=message))
        return ""


class Meaning(Struct, frozen=True, kw_only=True):
    """The message that a command stands for: its text, and the shell command run for it instead of
    asking a model."""

    text: str
    command: str = ""


def mean_nothing(arguments: str) -> None:
    """Return None: the command is no message."""


def say_nothing(language: str) -> str:
    """Return "": the feature's own texts describe the command."""
    return ""


class Command(Struct, frozen=True, kw_only=True):
    """A slash command. `run` returns the answer, "" if it has answered already. `least`: the role
    required. `help` describes it in a language for menus, by default with the feature's text
    `command_<name>`. `is_told`: the turn that it begins shows it as its person wrote it. `of_talk`:
    it concerns what is said; given in a channel of threads, it is for its person's newest one
    there. `mean` returns the message that it is with these arguments, None if it acts by itself.
    `most_words`: further words are refused, as nothing would read them; None: `run` reads all."""

    name: str
    run: Callable[[Call], Awaitable[str]]
    help: Callable[[str], str] = say_nothing
    mean: Callable[[str], Meaning | None] = mean_nothing
    least: Role = "user"
    is_told: bool = False
    of_talk: bool = False
    most_words: int | None = None


def own_command(
    name: str,
    run: Callable[[Call], Awaitable[str]],
    least: Role = "user",
    *,
    of_talk: bool = False,
    most_words: int | None = None,
) -> Command:
    """Make a command of ours: its help is the text `command_<name>` of the gateway's."""
    told = partial(say, cast(Key, f"command_{name}"))
    return Command(
        name=name, run=run, help=told, least=least, of_talk=of_talk, most_words=most_words
    )


async def run_command(command: Command, call: Call) -> str:
    """Run a command, unless its person may not, or it would ignore some of the words."""
    access = call.context.services.access
    if not is_allowed(access, call.role, command):
        return say_refused(call.role, find_least(access, command), call.language)
    most = command.most_words
    if most is not None and len(call.words) > most:
        return refuse_words(call, most)
    return await command.run(call)


def refuse_words(call: Call, most: int) -> str:
    """Say that the words after the first `most` do not belong to the command."""
    named = OwnText(name_command(" ".join((call.command.name, *call.words[:most]))))
    return say("command_extra", call.language, command=named)


def is_allowed(access: Access, role: Role | None, command: Command) -> bool:
    """Return True if this role may run the command."""
    return at_least(role, find_least(access, command))


def find_least(access: Access, command: Command) -> Role:
    """The least role that the command needs: by the settings' rights, else its own."""
    return access.policy.rights.get(command.name, command.least)


# ---- presses and inbound values ------------------------------------------------------------


class PressHandler(Struct, frozen=True, kw_only=True):
    """Carries out the presses of one type. `least`: the role it needs, None if `handle` decides
    itself who may press."""

    kind: type[Struct]
    handle: Callable[[Context, InboxRow, Pressed, Press], Awaitable[None]]
    least: Role | None = "user"


class InboundHandler(Struct, frozen=True, kw_only=True):
    """Handles inbox rows of one type, or leaves them in the queue."""

    kind: type[Struct]
    handle: Callable[[Context, InboxRow, Inbound], Awaitable[None]]


class QueuedHandler(Struct, frozen=True, kw_only=True):
    """Handles a row of one type when it has waited longest in the queue: takes it out, and begins
    its turn. No turn if there is nothing to do."""

    kind: type[Struct]
    begin: Callable[[Context, InboxRow, Inbound], Awaitable[OpenTurn | None]]


def on_press(
    kind: type[P],
    handle: Callable[[Context, InboxRow, Pressed, P], Awaitable[None]],
    least: Role | None = "user",
) -> PressHandler:
    """Handle button presses of a type; of `PluginPress` those that name the feature. `least`: the
    role required, None if `handle` checks the rights itself."""

    async def handle_press(context: Context, row: InboxRow, pressed: Pressed, press: Press) -> None:
        assert isinstance(press, kind)
        await handle(context, row, pressed, press)

    return PressHandler(kind=kind, handle=handle_press, least=least)


def on_inbound(
    kind: type[In], handle: Callable[[Context, InboxRow, In], Awaitable[None]]
) -> InboundHandler:
    """Handle inbox rows of a type."""

    async def handle_inbound(context: Context, row: InboxRow, inbound: Inbound) -> None:
        assert isinstance(inbound, kind)
        await handle(context, row, inbound)

    return InboundHandler(kind=kind, handle=handle_inbound)


def on_queued(
    kind: type[In], begin: Callable[[Context, InboxRow, In], Awaitable[OpenTurn | None]]
) -> QueuedHandler:
    """Begin turns from queued rows of a type."""

    async def begin_turn(context: Context, row: InboxRow, inbound: Inbound) -> OpenTurn | None:
        assert isinstance(inbound, kind)
        return await begin(context, row, inbound)

    return QueuedHandler(kind=kind, begin=begin_turn)


# ---- turns -----------------------------------------------------------------------------------

AddToBrief = Callable[[Brief, Thread, TurnInput], Brief]
"""Adds to a turn's brief before it is recorded; receives the history that the model sees."""
OnBegin = Callable[[Context, TurnRow], Awaitable[AddToBrief | None]]
"""Reads the context of a new turn."""
TurnCode = Callable[[Scope, tuple[Message, ...], tuple[Message, ...]], Awaitable[TurnResult]]
"""A turn's code over its scope, the history and its own past messages."""
OnEnd = Callable[[Context, TurnRow], None]
"""Called when a turn is over, however it ended, with its last commit queued."""


class FiredTurns(Struct, frozen=True, kw_only=True):
    """Turns started by a due time: their views, their code, and the handling of a report that its
    chat refuses. Turns of messages never come here."""

    fold: Callable[[TurnRow, EventFolds], ViewFold]
    code: Callable[[TurnMaker, OpenTurn, Hands], TurnCode]
    give_up_report: Callable[[Context, OutboxRow, str], None]


class EventHandler(Struct, frozen=True, kw_only=True):
    """Shows the events of one type, each as a view of its own or below the tool lines."""

    kind: type[Struct]
    fold: FoldEvent


def on_event(kind: type[E], show: Callable[[E, str], View | ActivityNote]) -> EventHandler:
    """Show events of a type by a pure function: a view in the turn's language, or a note below the
    tool lines. The same records give the same views."""

    def fold_event(event: AgentEvent, language: str) -> View | ActivityNote:
        assert isinstance(event, kind)
        return show(event, language)

    return EventHandler(kind=kind, fold=fold_event)


# ---- features --------------------------------------------------------------------------------


class Feature(Struct, frozen=True, kw_only=True):
    """Everything one feature adds. `begins`: starts turns that no message started; `texts`: its own
    texts, with any keys; `settings`: its declared settings, read by `Context.read`."""

    name: str
    commands: tuple[Command, ...] = ()
    presses: tuple[PressHandler, ...] = ()
    inbounds: tuple[InboundHandler, ...] = ()
    begins: tuple[QueuedHandler, ...] = ()
    on_begin: tuple[OnBegin, ...] = ()
    on_end: tuple[OnEnd, ...] = ()
    events: tuple[EventHandler, ...] = ()
    texts: Texts[Never] = Texts()
    settings: tuple[Setting[object], ...] = ()
    fired: FiredTurns | None = None


class Features:
    """All features of a gateway, by what they react to. `menu`: the order of commands; others
    follow. ValueError if two features react to the same."""

    def __init__(self, features: Sequence[Feature], menu: Sequence[str] = ()) -> None:
        commands: dict[str, Command] = {}
        names: dict[str, Feature] = {}
        self.settings: dict[str, Setting[object]] = {}
        self._presses: dict[tuple[type[Struct], str], PressHandler] = {}
        self.inbounds: dict[type[Struct], InboundHandler] = {}
        self.begins: dict[type[Struct], QueuedHandler] = {}
        self.on_begin = tuple(hook for one in features for hook in one.on_begin)
        self.on_end = tuple(hook for one in features for hook in one.on_end)
        events: dict[type[Struct], tuple[str, FoldEvent]] = {}
        self.events: EventFolds = events
        self.fired: FiredTurns | None = None
        for one in features:
            _add(one, names, {one.name: one})
            _add(one, commands, {command.name: _add_help(one, command) for command in one.commands})
            _add(one, self._presses, {_press_key(one, kind.kind): kind for kind in one.presses})
            _add(one, self.inbounds, {handler.kind: handler for handler in one.inbounds})
            _add(one, self.begins, {handler.kind: handler for handler in one.begins})
            _add(one, self.settings, {setting.name: setting for setting in one.settings})
            _check_events(one)
            _check_texts(one)
            if one.fired is not None and self.fired is not None:
                raise ValueError(f"{one.name} adds what another feature has: fired")
            self.fired = one.fired or self.fired
            _add(one, events, {handler.kind: (one.name, handler.fold) for handler in one.events})
        first = [name for name in menu if name in commands]
        self.commands = {name: commands[name] for name in dict.fromkeys((*first, *commands))}

    def find_press(self, press: Press) -> PressHandler | None:
        """Return the handler of a press, None if no feature handles it."""
        name = press.feature if isinstance(press, PluginPress) else ""
        return self._presses.get((type(press), name))


def _press_key(feature: Feature, kind: type[Struct]) -> tuple[type[Struct], str]:
    """Return the lookup key of a press: its type, and for plugins also the feature's name."""
    return kind, feature.name if kind is PluginPress else ""


def _add_help(feature: Feature, command: Command) -> Command:
    """Return the command with its help text, taken from the feature's texts if it brings none."""
    if command.help is not say_nothing:
        return command
    key = f"command_{command.name}"
    if feature.texts.find(key) is None:
        raise ValueError(f"{feature.name} says nothing of its command: it has no text {key}")
    return replace(command, help=lambda language: feature.texts.find(key, language) or "")


def _check_events(feature: Feature) -> None:
    if own := [handler.kind.__name__ for handler in feature.events if handler.kind in OWN_EVENTS]:
        raise ValueError(f"{feature.name} adds what every turn shows already: {', '.join(own)}")


def _check_texts(feature: Feature) -> None:
    try:
        feature.texts.check()
    except ValueError as error:
        raise ValueError(f"in {feature.name} {error}") from None


def _add(feature: Feature, known: dict[K, V], new: dict[K, V]) -> None:
    twice = known.keys() & new.keys()
    if twice:
        names = ", ".join(sorted(_describe(one) for one in twice))
        raise ValueError(f"{feature.name} adds what another feature has: {names}")
    known.update(new)


def _describe(key: object) -> str:
    kind = key[0] if isinstance(key, tuple) else key
    return kind.__name__ if isinstance(kind, type) else str(kind)
