"""What happened inside a turn: one typed stream. `kind` is the wire name, the class is past tense.

Events that people may see later are journaled (`Scope.emit`); the live ones (`TokenAdded`,
`ReasoningAdded`) are not: after a crash the text starts again in the same message.
"""

from typing import Literal, TypeAlias

from msgspec import Struct

from agent_core.models.port import Usage


class StageEntered(Struct, frozen=True, kw_only=True, tag_field="kind", tag="stage"):
    """The turn entered a stage, e.g. `thinking`, `acting`."""

    name: str


class TokenAdded(Struct, frozen=True, kw_only=True, tag_field="kind", tag="token"):
    """Live: more words of the answer."""

    text: str


class ReasoningAdded(Struct, frozen=True, kw_only=True, tag_field="kind", tag="reasoning"):
    """Live: more words of the reasoning."""

    text: str


class TextRestarted(Struct, frozen=True, kw_only=True, tag_field="kind", tag="restarted"):
    """Live: the words so far are void, the answer begins anew."""


class ToolCalled(Struct, frozen=True, kw_only=True, tag_field="kind", tag="tool_call"):
    """The model asked for a tool."""

    call_id: str
    name: str
    arguments: str


class ToolAnswered(Struct, frozen=True, kw_only=True, tag_field="kind", tag="tool_result"):
    """A tool gave its result, or failed."""

    call_id: str
    name: str
    content: str
    error: bool = False


class OutputAdded(Struct, frozen=True, kw_only=True, tag_field="kind", tag="terminal_output"):
    """Live: more output of a running command."""

    call_id: str
    text: str


class Interrupted(Struct, frozen=True, kw_only=True, tag_field="kind", tag="interrupt"):
    """A question to a person was put."""

    key: str
    text: str


class InterruptAnswered(
    Struct, frozen=True, kw_only=True, tag_field="kind", tag="interrupt_response"
):
    """A question got its answer."""

    key: str
    choice: str


class ErrorMet(Struct, frozen=True, kw_only=True, tag_field="kind", tag="error"):
    """Something went wrong; the text says what and what to do."""

    text: str


class StatusShown(Struct, frozen=True, kw_only=True, tag_field="kind", tag="status"):
    """A short word on what goes on."""

    text: str


class UsageCounted(Struct, frozen=True, kw_only=True, tag_field="kind", tag="usage"):
    """Tokens that a model call took."""

    model: str
    usage: Usage


class BudgetWarned(Struct, frozen=True, kw_only=True, tag_field="kind", tag="budget"):
    """A share of the turn's limit is used."""

    used: int
    limit: int


class ReplayDiverged(Struct, frozen=True, kw_only=True, tag_field="kind", tag="replay_diverged"):
    """The code no longer asks what the journal holds; the turn goes on from its records."""

    key: str
    text: str


class Completed(Struct, frozen=True, kw_only=True, tag_field="kind", tag="complete"):
    """The turn has its final answer."""

    text: str
    finish: Literal["stop", "limit", "error", "cancelled"] = "stop"


AgentEvent: TypeAlias = (
    StageEntered
    | TokenAdded
    | ReasoningAdded
    | TextRestarted
    | ToolCalled
    | ToolAnswered
    | OutputAdded
    | Interrupted
    | InterruptAnswered
    | ErrorMet
    | StatusShown
    | UsageCounted
    | BudgetWarned
    | ReplayDiverged
    | Completed
)
