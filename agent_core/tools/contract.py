"""The contract of a tool: a name, typed arguments, a class of repetition, a risk, and a call."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Generic, Protocol, TypeAlias

from msgspec import Struct
from pydantic import BaseModel
from typing_extensions import TypeVar

from agent_core.context.limits import MAX_OBSERVE
from agent_core.errors import ToolFailed
from agent_core.messages import Access, Repetition, ToolOutput, ToolResult
from agent_core.phrases import Phrase
from agent_core.questions import Answer, Decision, Question
from agent_core.scope import CallHolder

Args = TypeVar("Args", bound=BaseModel, covariant=True, default=BaseModel)
"""A tool's own arguments. Covariant although calls take them, so that tools of all kinds share one
toolbox: code that does not know a tool's arguments has them made by `Tool.arguments`."""


class Caller(Protocol):
    """Makes calls of its own while its call runs: a script."""

    @property
    def gone(self) -> bool:
        """True if it has ended: nothing is run for it any more."""

    def pause(self) -> None:
        """A person is being asked about a call of it."""

    def resume(self) -> None:
        """The person has answered."""


class InnerCall(Struct, frozen=True, kw_only=True):
    """A call that a running call wants: its number, which no other of them has, the tool's name,
    and its arguments as JSON."""

    n: int
    name: str
    arguments: str


Invoke: TypeAlias = Callable[[InnerCall, Caller], Awaitable[ToolResult]]
"""Runs a call like one of the model's: judged, asked about, journaled. Raises Parked while the turn
waits for a person; a repeated request for the same call then continues it."""


async def refuse_inner(call: InnerCall, caller: Caller) -> ToolResult:
    """Refuse the call: there is no turn that could make it."""
    raise ToolFailed("This tool belongs to a turn; it does not run alone.")


async def refuse_question(name: str, question: Question) -> Answer:
    """Decline the question: there is nobody to ask."""
    raise ToolFailed("This tool asks a person; it does not run alone.")


async def show_nobody(n: int, text: str) -> None:
    """Show nothing: nobody is watching."""


class ToolContext(Struct, frozen=True, kw_only=True):
    """The means of a running tool.

    `key` is the same if an idempotent call is run again. `limit` is in seconds. `output` shows live
    text to people. `hosts`: open hosts besides those that the call names. `invoke` makes a call
    within this one, for a tool with a `holder`. `progress` shows a line beside the call until its
    result is there: the line's number, unique within the call, and its words. `ask` asks the
    person, for a tool with a `holder`, under a name unique within the call; it raises Parked like
    `invoke`.
    """

    workspace: Path
    key: str
    limit: float
    output: Callable[[str], None]
    hosts: frozenset[str] = frozenset()
    invoke: Invoke = refuse_inner
    progress: Callable[[int, str], Awaitable[None]] = show_nobody
    ask: Callable[[str, Question], Awaitable[Answer]] = refuse_question
    most: int = MAX_OBSERVE
    """Characters of the result that the model sees."""


ToolCallable: TypeAlias = Callable[[Args, ToolContext], Awaitable[str | ToolOutput]]


class Tool(Struct, Generic[Args], frozen=True, kw_only=True):
    """A tool that the model may call.

    `call` gets validated `arguments` and returns the text for the model, or an Output if it has
    files for people too; it raises ToolFailed with a text for the model. `bind` returns what an
    approval is bound to besides name and arguments (working folder, contents of scripts named); it
    is computed when the person is asked and again right before the call. `preview` describes the
    effect for the person who is asked: it changes nothing and never raises.
    """

    name: str
    description: str
    arguments: type[Args]
    repetition: Repetition
    access: Access
    call: ToolCallable[Args]
    bind: Callable[[Args, Path], str] | None = None
    is_done: Callable[[Args, Path], bool] | None = None
    """True where nothing is left to do: all is as the call would make it, so that one which was
    made before a crash is still the one that was approved."""
    place: Callable[[Path], str] | None = None
    """The folder where it would run now, if that is not among its arguments."""
    preview: Callable[[Args, Path], str | Phrase] | None = None
    summary: str = ""
    """A summary of at most 44 characters for lists; "" for its description's beginning."""
    limit: float = 30.0
    interactive: bool = False
    """Its batch runs one after the other."""
    question: Callable[[Args], Question] | None = None
    """Set: the call is a question to the person; `call` is never made."""
    polls: bool = False
    """The same call is repeated by nature, to see how something goes on."""
    isolated: bool = True
    """False: nothing isolates what it runs, so a person is always asked."""
    rule: Callable[[Args], str | Phrase] | None = None
    """The extent of 'always', in words, where that is more than this very call."""
    looks: Callable[[Args], bool] | None = None
    """True for calls of a tool that writes which only read."""
    entrance: Callable[[], Awaitable[Decision | None]] | None = None
    """If set: asked before the call begins, None: nothing. It is called again after the first
    option was chosen; any other refuses the call."""
    holder: CallHolder | None = None
    """If set: the call makes calls of its own, and what it started is held while one of them waits
    for a person. It keeps its own time."""
    schema: dict[str, object] | None = None
    """If set: a foreign tool. The arguments are checked against this JSON schema, and paths in them
    are not the workspace's."""
