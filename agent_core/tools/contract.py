"""What a tool is: a name, typed arguments, a class of repetition, a risk, and a call."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Generic, Protocol, TypeAlias

from msgspec import Struct
from pydantic import BaseModel
from typing_extensions import TypeVar

from agent_core.context.room import MAX_OBSERVE
from agent_core.errors import ToolFailed
from agent_core.messages import Access, Repetition, ToolOutput, ToolResult
from agent_core.phrases import Phrase
from agent_core.questions import Answer, Decision, Question
from agent_core.scope import CallHolder

Args = TypeVar("Args", bound=BaseModel, covariant=True, default=BaseModel)
"""A tool's own arguments. Covariant although calls take them, so that tools of all kinds stand in
one toolbox: whoever does not know a tool's arguments has them made by `Tool.arguments`."""


class Caller(Protocol):
    """What makes calls of its own while its call runs: a script."""

    @property
    def gone(self) -> bool:
        """It has ended: nothing is run for it any more."""

    def pause(self) -> None:
        """A person is asked about a call of it."""

    def resume(self) -> None:
        """The person has answered."""


class InnerCall(Struct, frozen=True, kw_only=True):
    """A call that a running call wants: its number, which no other of them has, the tool's name,
    and its arguments as JSON."""

    n: int
    name: str
    arguments: str


Invoke: TypeAlias = Callable[[InnerCall, Caller], Awaitable[ToolResult]]
"""Runs a call as one of the model's: judged, asked about, journaled. Raises Parked where the turn
waits for a person; asked again for the same call after that, it goes on where it was."""


async def refuse_inner(call: InnerCall, caller: Caller) -> ToolResult:
    """There is no turn that calls could be made in."""
    raise ToolFailed("This tool belongs to a turn; it does not run alone.")


async def refuse_question(name: str, question: Question) -> Answer:
    """There is nobody to ask."""
    raise ToolFailed("This tool asks a person; it does not run alone.")


async def show_nobody(n: int, text: str) -> None:
    """Nobody looks on."""


class ToolContext(Struct, frozen=True, kw_only=True):
    """What a running tool may use.

    `key` is the same if an idempotent call is run again. `limit` is in seconds.
    `output` shows live text to people. `hosts`: what is open besides what the call names.
    `invoke` makes a call within this one, for a tool with a `holder`. `progress` says in a line
    beside the call how far it is, until its result stands there: the number of the sign, which no
    other of the call has, and its words. `ask` puts a question to the person, for a tool with a
    `holder`, under a name that no other of the call has; it raises Parked as `invoke` does.
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
    """Something that the model may call.

    `call` gets validated `arguments` and returns the text for the model, or an Output where it
    has files for people too; it raises ToolFailed with a text for the model. `bind` returns what
    an approval is bound to besides name and arguments (working folder, contents of scripts
    named); it is computed when the person is asked and again just before the call. `preview`
    says what the call would change, for who is asked: it changes nothing and never raises.
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
    """Where in the workspace it would run now, if that is not among its arguments."""
    preview: Callable[[Args, Path], str | Phrase] | None = None
    summary: str = ""
    """What it does, in at most 44 characters, where a list names it; "": its description's
    beginning."""
    limit: float = 30.0
    interactive: bool = False
    """Its batch runs one after the other."""
    question: Callable[[Args], Question] | None = None
    """Set: the call is a question to the person; `call` is never made."""
    polls: bool = False
    """The same call is made again by nature: to see how something goes on."""
    isolated: bool = True
    """False: nothing isolates what it runs, so a person is always asked."""
    rule: Callable[[Args], str | Phrase] | None = None
    """What 'always' would cover, in words, where that is more than this very call."""
    looks: Callable[[Args], bool] | None = None
    """True for calls of a tool that writes which only read."""
    entrance: Callable[[], Awaitable[Decision | None]] | None = None
    """Set: what a person is asked before the call begins, None: nothing. It is asked for again
    after the first option was chosen; any other refuses the call."""
    holder: CallHolder | None = None
    """Set: the call makes calls of its own, and what it started is held while one of them waits
    for a person. It keeps its own time."""
    schema: dict[str, object] | None = None
    """Set: somebody else's tool. The arguments are checked against this JSON schema, and paths in
    them are not the workspace's."""
