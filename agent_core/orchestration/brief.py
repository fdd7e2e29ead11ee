"""A turn's input, its equipment, and its result. Values."""

from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from agent_core.context.compression import Flush
from agent_core.context.data_marks import strip_marks
from agent_core.context.limits import MAX_OBSERVE, ContextLimits
from agent_core.events import OutputAdded
from agent_core.guardrails.guard import Guard
from agent_core.guardrails.redaction import Hides
from agent_core.memory.past import PastSearch
from agent_core.memory.port import Memory
from agent_core.messages import Mention, Message, Picture, ToolCall, user
from agent_core.models.port import ModelReply, ModelRequest, OnDelta, ToolSpec
from agent_core.orchestration.plan import Plan, title
from agent_core.policy import Bond, Verdict
from agent_core.research.depths import ResearchDeps
from agent_core.tools.finding.toolsets import Reach
from agent_core.tools.hooks import ToolHooks
from agent_core.tools.toolbox import Prepared, Toolbox

Complete: TypeAlias = Callable[[str, ModelRequest, OnDelta], Awaitable[ModelReply]]
Judge: TypeAlias = Callable[[Prepared], Verdict]
Live: TypeAlias = Callable[[OutputAdded], None]


class Brief(Struct, frozen=True, kw_only=True, rename={"appended": "recalled"}):
    """Everything that a turn reads and that is not an argument, recorded at its start. `text` is
    what the model reads; `said` what the person wrote, for surfaces that show it. `model`: a tier
    or `provider/model`. `tools`: names that are offered. `limit`: seconds for a model call."""

    text: str
    system: str
    model: str
    tools: tuple[str, ...]
    workspace: str
    max_rounds: int = 30
    limit: float = 600.0
    cache_key: str = ""
    said: str = ""
    route: Literal["simple", "planned", "research"] = "simple"
    routing: Literal["rules", "llm"] = "rules"
    """`llm`: a model is asked whether the request is one for research."""
    review: bool = False
    """A plan is shown to a person before it is worked off."""
    max_turns: int = 90
    """Model calls of the whole turn."""
    max_replans: int = 3
    step_rounds: int = 20
    room: ContextLimits = ContextLimits()
    reach: Reach | None = None
    """Tools that may be found and called besides `tools`; None: none."""
    more: tuple[ToolSpec, ...] = ()
    """Descriptions shown for some of the `tools`: of servers' tools, as of the turn's start; of our
    own, for a model with a small window."""
    most_observed: int = MAX_OBSERVE
    """Characters of a tool's result that the model sees."""
    most_messages: int = 0
    """Maximum messages of the history; older ones are left out. 0: no limit."""
    debug: bool = False
    """True if people are told what is gathered, planned and found."""
    plans: bool = True
    """True if `task_planning` may turn this into a plan."""
    appended: str = ""
    """The end of `text` that nobody said: memory and surroundings."""
    pictures: tuple[Picture, ...] = ()
    """Pictures that the person sent."""
    files: tuple[str, ...] = ()
    """Other files that the person sent: their paths in the workspace."""
    mentions: tuple[Mention, ...] = ()
    """Server resources and prompts that the person named."""
    direct: ToolCall | None = None
    """The call that the turn begins with, before any model is asked."""
    title: str = ""
    """The title of a plan, where it is known before; "" for its first words."""
    first_title: str = ""
    tries: int = 0
    """Of a plan that is retried: its first title, and the number of the attempt."""
    command: str = ""
    """A command run for the person instead of asking a model; its output is the answer."""
    whole: str = ""
    """For a step: the request of the turn; the `text` of a step was written by a model."""

    def request_text(self) -> str:
        """Return `text` without the parts that nobody said."""
        if not self.appended or self.appended not in self.text:
            return self.text
        before, _, after = self.text.rpartition(self.appended)
        return f"{before.rstrip()}{after}"

    def choose_title(self) -> str:
        """Return the title of a plan for it."""
        return self.title or title(self.said or strip_marks(self.request_text()))

    def append(self, text: str, said: str) -> "Brief":
        """Return the brief with `text`, which nobody said, appended. `said`: the person's own
        words."""
        appended = "\n\n".join(filter(None, (self.appended, text)))
        return replace(
            self, text=f"{self.text}\n\n{text}", appended=appended, said=self.said or said
        )

    def make_request(self) -> Message:
        """Return the first message to the model."""
        return user(self.text, self.pictures)


class Hands(Struct, frozen=True, kw_only=True):
    """The live part of a turn, beside its recorded brief: the models, the tools, the policy."""

    complete: Complete
    toolbox: Toolbox
    judge: Judge
    live: Live
    hooks: ToolHooks = ToolHooks()
    flush: Flush | None = None
    """Called before older messages are summarised."""
    research: ResearchDeps | None = None
    """None: there is no web research."""
    memory: Memory | None = None
    past: PastSearch | None = None
    """Searches the person's other conversations; None: there is no search."""
    guard: Guard | None = None
    """Scans messages, answers and calls; None: nothing does."""
    hides: Hides | None = None
    """Redacts secrets in tools' results and the model's words."""
    bond: Callable[[Prepared], Bond] | None = None
    """Returns what an approval of a call is bound to, as of now."""
    refresh: Callable[[], Awaitable[None]] | None = None
    """Updates facts of the policy that are not in memory, such as the person's role."""
    snapshot: Callable[[], Awaitable[None]] | None = None
    """Keeps the workspace as it is, before something of the turn changes it."""
    news: Callable[[], str] = str
    """Returns news to add to the next call's result, once; "" for none."""
    hosts: Callable[[], frozenset[str]] = frozenset
    """Hosts that are open to every command, as of now."""

    @property
    def answer_guard(self) -> Guard | None:
        """The scanner of answers, None if there is none."""
        return self.guard if self.guard is not None and self.guard.scans_answers else None


class TurnResult(Struct, frozen=True, kw_only=True):
    """The result of a turn: the answer, and its messages for the transcript. `seen`: the history as
    the model saw it, if it was compressed."""

    text: str
    messages: tuple[Message, ...]
    seen: tuple[Message, ...] = ()
    finish: Literal["stop", "limit", "error"] = "stop"


class LoopResult(Struct, frozen=True, kw_only=True):
    """The result of a loop: its words, its messages, and why it ended. `cut`: a person skipped it;
    `stuck`: it goes in circles; `spent`: the turn's model calls are used up; `planned`: it made
    `plan`, which is to be carried out."""

    text: str
    messages: tuple[Message, ...]
    finish: Literal["stop", "limit", "error", "cut", "stuck", "spent", "planned"] = "stop"
    why: str = ""
    plan: Plan | None = None

    def to_turn(self) -> TurnResult:
        """Return the turn's result."""
        finish: Literal["stop", "limit", "error"] = "stop"
        if self.finish in ("limit", "spent", "error"):
            finish = "error" if self.finish == "error" else "limit"
        return TurnResult(text=self.text, messages=self.messages, finish=finish)
