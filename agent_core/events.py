"""The events of a turn: one typed stream.

`kind` is the wire name, the class is past tense. Events that people may see later are journaled
(`Scope.emit`); the live ones (`TokenAdded`, `ReasoningAdded`) are not: after a crash the text
starts again in the same message.
"""

from typing import Literal, TypeAlias

from msgspec import Struct

from agent_core.memory.documents import Action, Target
from agent_core.models.port import Usage
from agent_core.orchestration.plan import Step
from agent_core.phrases import Phrase

Stage = Literal["planning", "working", "replanning", "finalizing", "giving_up"]
ResearchStage = Literal["init_config", "search_loop", "analyze", "synthesize", "write_report"]


class StageEntered(Struct, frozen=True, kw_only=True, tag_field="kind", tag="stage"):
    """The turn entered a stage. `giving_up`: it ends with steps that failed for good."""

    name: Stage


class Routed(Struct, frozen=True, kw_only=True, tag_field="kind", tag="routing"):
    """The turn's route was chosen; `why` if it differs from the request."""

    route: Literal["simple", "planned", "research"]
    why: str = ""


class PlanMade(Struct, frozen=True, kw_only=True, tag_field="kind", tag="plan_overview"):
    """A plan was made or changed: all its steps with their states. `revision` counts re-plans.
    `listed`: it is the agent's own to-do list, which is not carried out step by step."""

    title: str
    steps: tuple[Step, ...]
    revision: int = 0
    listed: bool = False


class StepBegan(Struct, frozen=True, kw_only=True, tag_field="kind", tag="plan_step"):
    """A step of the plan is being worked on."""

    id: str
    description: str


class StepEnded(Struct, frozen=True, kw_only=True, tag_field="kind", tag="plan_step_completed"):
    """A step ended; `note` tells its outcome in a few words."""

    id: str
    state: Literal["done", "failed", "skipped"]
    note: str = ""


class TodoChanged(Struct, frozen=True, kw_only=True, tag_field="kind", tag="todo_update"):
    """The plan as a markdown checklist, after a change."""

    text: str


class ParallelBegan(Struct, frozen=True, kw_only=True, tag_field="kind", tag="parallel_start"):
    """These steps run in parallel from now on."""

    steps: tuple[str, ...]


class ParallelTaskEnded(Struct, frozen=True, kw_only=True, tag_field="kind", tag="parallel_task"):
    """One of the parallel steps ended."""

    id: str


class ParallelEnded(Struct, frozen=True, kw_only=True, tag_field="kind", tag="parallel_complete"):
    """All parallel steps ended."""

    steps: tuple[str, ...]


class ResearchMoved(Struct, frozen=True, kw_only=True, tag_field="kind", tag="research"):
    """A research entered another stage. `count`: its results (queries, sources, findings)."""

    stage: ResearchStage
    state: Literal["running", "done"]
    title: str = ""
    count: int = 0


class SourceFound(Struct, frozen=True, kw_only=True, tag_field="kind", tag="source"):
    """A page was read for a research, or was not: then `why`."""

    url: str
    title: str = ""
    why: str = ""


class TokenAdded(Struct, frozen=True, kw_only=True, tag_field="kind", tag="token"):
    """Live: more words of the answer."""

    text: str


class ReasoningAdded(Struct, frozen=True, kw_only=True, tag_field="kind", tag="reasoning"):
    """Live: more words of the reasoning."""

    text: str


class TextRestarted(Struct, frozen=True, kw_only=True, tag_field="kind", tag="restarted"):
    """Live: the words so far are void, the answer begins anew."""


class ToolCalled(Struct, frozen=True, kw_only=True, tag_field="kind", tag="tool_call"):
    """The model called a tool."""

    call_id: str
    name: str
    arguments: str


class ToolAnswered(Struct, frozen=True, kw_only=True, tag_field="kind", tag="tool_result"):
    """A tool gave its result, or failed."""

    call_id: str
    name: str
    content: str
    error: bool = False


class ToolProgressed(Struct, frozen=True, kw_only=True, tag_field="kind", tag="tool_progress"):
    """A running call made progress, in the words of the server or program that it calls."""

    call_id: str
    text: str


class OutputAdded(Struct, frozen=True, kw_only=True, tag_field="kind", tag="terminal_output"):
    """Live: more output of a running command."""

    call_id: str
    text: str


class CommandBegan(Struct, frozen=True, kw_only=True, tag_field="kind", tag="terminal_command"):
    """A command starts; with `background` it runs on after its call."""

    call_id: str
    command: str
    background: bool = False


class CommandFailed(Struct, frozen=True, kw_only=True, tag_field="kind", tag="terminal_error"):
    """A command did not end by itself: it could not start, took too long, was stopped, or its end
    is unknown. `text` says which."""

    call_id: str
    text: str


class CommandEnded(Struct, frozen=True, kw_only=True, tag_field="kind", tag="terminal_complete"):
    """A command ended by itself."""

    call_id: str
    exit_code: int


class CodeRan(Struct, frozen=True, kw_only=True, tag_field="kind", tag="code_result"):
    """A program written by the model ended; `output` is its output. No `exit_code`: it was stopped,
    as the output says."""

    call_id: str
    output: str
    exit_code: int | None = None


class WorkspaceChanged(Struct, frozen=True, kw_only=True, tag_field="kind", tag="workspace_update"):
    """A call wrote these paths of the workspace. Writes by commands are not known."""

    call_id: str
    paths: tuple[str, ...]


class ImageGiven(Struct, frozen=True, kw_only=True, tag_field="kind", tag="image"):
    """A call gave people a picture. `ref` names a kept copy; `size` in bytes."""

    call_id: str
    ref: str
    name: str
    mime: str
    size: int


class Interrupted(Struct, frozen=True, kw_only=True, tag_field="kind", tag="interrupt"):
    """A question to a person was put."""

    key: str
    text: str


class InterruptAnswered(
    Struct, frozen=True, kw_only=True, tag_field="kind", tag="interrupt_response"
):
    """A question was answered."""

    key: str
    choice: str


class ErrorMet(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="error"
):
    """An error occurred; the text says what and what to do. `phrases`: the same as values, () if
    there is none."""

    text: str
    phrases: tuple[Phrase, ...] = ()


class GuardrailWarned(Struct, frozen=True, kw_only=True, tag_field="kind", tag="guardrail"):
    """A scanner of the guardrails found something that was let through, with a word about it."""

    scanner: str
    words: Phrase


class StatusShown(Struct, frozen=True, kw_only=True, tag_field="kind", tag="status"):
    """A short status. `phase`: gather, plan or verify, emitted with AGENT_DEBUG."""

    text: str
    phase: str = ""


class UsageCounted(Struct, frozen=True, kw_only=True, tag_field="kind", tag="usage"):
    """Tokens used by a model call. `prefix` identifies the start of its request: while it is the
    same, the provider's cache can hold it; "" for calls that stand alone."""

    model: str
    usage: Usage
    prefix: str = ""


class BudgetWarned(Struct, frozen=True, kw_only=True, tag_field="kind", tag="budget"):
    """A share of the turn's limit is used."""

    used: int
    limit: int


class Compressed(Struct, frozen=True, kw_only=True, tag_field="kind", tag="compressed"):
    """Older messages were removed from the model's view. `messages`: how many in all; `summarised`:
    a summary replaces them. `lineage` identifies the new history by its beginning, `parent` the
    former one, "" for a conversation from its start."""

    messages: int
    summarised: bool = True
    lineage: str = ""
    parent: str = ""


class MemorySaved(Struct, frozen=True, kw_only=True, tag_field="kind", tag="memory_saved"):
    """The entry `text` was remembered or forgotten."""

    action: Action
    target: Target
    text: str


class HandedOff(Struct, frozen=True, kw_only=True, tag_field="kind", tag="handoff"):
    """Work went to another agent, with these files of the workspace."""

    to: str
    task: str
    files: tuple[str, ...] = ()


class SkillEnded(Struct, frozen=True, kw_only=True, tag_field="kind", tag="skill_output"):
    """A skill ended. `output`: its result as JSON, or the reason of its failure if not `ok`."""

    skill: str
    output: str
    ok: bool = True


class BrowserMoved(Struct, frozen=True, kw_only=True, tag_field="kind", tag="browser_action"):
    """The browser was used; it is at `url` now."""

    call_id: str
    action: str
    url: str = ""


class BrowserShown(Struct, frozen=True, kw_only=True, tag_field="kind", tag="browser_stream"):
    """The browser can be watched at `url`, as long as it is open."""

    call_id: str
    url: str


class FilesChanged(Struct, frozen=True, kw_only=True, tag_field="kind", tag="files_changed"):
    """The turn ended and changed these files of the workspace, by any means: the first ones by
    name, and how many `more` there are. They can be restored."""

    turn: str
    paths: tuple[str, ...]
    more: int = 0


class AppShown(Struct, frozen=True, kw_only=True, tag_field="kind", tag="app_preview"):
    """The app `name` runs; a single-use link opens it."""

    call_id: str
    name: str
    url: str


class FellBack(Struct, frozen=True, kw_only=True, tag_field="kind", tag="fallback"):
    """A fallback model answered."""

    model: str
    instead_of: str


class ReplayDiverged(Struct, frozen=True, kw_only=True, tag_field="kind", tag="replay_diverged"):
    """The code no longer makes the calls of the journal; the turn goes on from its records."""

    key: str
    text: str


class Completed(Struct, frozen=True, kw_only=True, tag_field="kind", tag="complete"):
    """The turn has its final answer."""

    text: str
    finish: Literal["stop", "limit", "error", "cancelled"] = "stop"


AgentEvent: TypeAlias = (
    StageEntered
    | Routed
    | PlanMade
    | StepBegan
    | StepEnded
    | TodoChanged
    | ParallelBegan
    | ParallelTaskEnded
    | ParallelEnded
    | ResearchMoved
    | SourceFound
    | TokenAdded
    | ReasoningAdded
    | TextRestarted
    | ToolCalled
    | ToolAnswered
    | ToolProgressed
    | WorkspaceChanged
    | ImageGiven
    | OutputAdded
    | CommandBegan
    | CommandFailed
    | CommandEnded
    | CodeRan
    | Interrupted
    | InterruptAnswered
    | ErrorMet
    | GuardrailWarned
    | StatusShown
    | UsageCounted
    | BudgetWarned
    | Compressed
    | MemorySaved
    | SkillEnded
    | BrowserMoved
    | BrowserShown
    | AppShown
    | FilesChanged
    | FellBack
    | HandedOff
    | ReplayDiverged
    | Completed
)
