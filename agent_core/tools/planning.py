"""task_planning: the model finds that a request takes several steps, and plans them."""

from collections.abc import Iterable

import msgspec
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent_core.errors import ToolFailed
from agent_core.messages import ToolCall, ToolResult
from agent_core.orchestration.plan import Plan, Step, problem, title
from agent_core.tools.contract import Tool, ToolContext

NAME = "task_planning"
WITHIN = "This is a step of a plan already. Do it without another plan."


class PlannedStep(BaseModel):
    """A step; `needs` are ids of steps whose results it uses."""

    model_config = ConfigDict(extra="ignore")

    id: str = Field(pattern=r"^[\w-]{1,20}$")
    description: str = Field(min_length=1)
    outcome: str = ""
    needs: list[str] = []


class PlanningArguments(BaseModel):
    """Arguments of task_planning."""

    title: str = Field("", description="At most six words.")
    steps: list[PlannedStep] = Field(min_length=2)


def planning_tool() -> Tool:
    """Make task_planning. Its steps are carried out by the orchestrator."""

    async def call(wanted: PlanningArguments, context: ToolContext) -> str:
        if why := problem(_make_plan(wanted)):
            raise ToolFailed(why)
        return "The plan stands. It is worked off step by step now."

    return Tool(
        name=NAME,
        description="Call it first, alone, when a request takes several steps: people see them as "
        "a checklist, and each is then worked off and checked.",
        arguments=PlanningArguments,
        repetition="pure",
        access="read",
        call=call,
    )


def read_plan(calls: Iterable[ToolCall], results: Iterable[ToolResult]) -> Plan | None:
    """Return the plan made in this round; its title is "" if the call had none."""
    went = {result.call_id for result in results if not result.error}
    for call in calls:
        if call.name == NAME and call.id in went:
            try:
                return _make_plan(
                    PlanningArguments.model_validate(msgspec.json.decode(call.arguments))
                )
            except (msgspec.DecodeError, ValidationError):
                continue
    return None


def _make_plan(wanted: PlanningArguments) -> Plan:
    steps = (
        Step(
            id=step.id,
            description=step.description,
            outcome=step.outcome,
            needs=tuple(step.needs),
        )
        for step in wanted.steps
    )
    return Plan(title=title(wanted.title), steps=tuple(steps))
