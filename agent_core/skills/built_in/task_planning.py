"""The skill task_planning: the planner's steps for a request, taken up by the tool of that name.
The turn then works them off as a plan."""

from collections.abc import Iterable

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.errors import ToolFailed
from agent_core.messages import ToolCall, ToolResult
from agent_core.orchestration.fitting import make_window
from agent_core.orchestration.plan import Plan, Step
from agent_core.orchestration.planner import draft
from agent_core.skills.contract import (
    Schema,
    SkillContext,
    SkillMetadata,
    ToolSkill,
    Values,
    fields,
    text,
)
from agent_core.tools import planning

INVOKE = "invoke_skill"
PLANNERS = frozenset({planning.NAME, INVOKE})
"""Tools whose call may make a plan."""
_STEP: Schema = {"type": "object", "required": ["id", "description"]}


def planning_skill() -> ToolSkill:
    """task_planning."""
    return ToolSkill(
        metadata=SkillMetadata(
            id=planning.NAME,
            description="Divide a request into steps; they are then worked off one by one. Call "
            "it alone.",
            category="automation",
            parameters=fields({"task": text("The whole request.")}),
            output_schema=fields(
                {"steps": {"type": "array", "minItems": 2, "items": _STEP}},
                {"title": {"type": "string"}},
            ),
        ),
        run=_run,
        tools=(planning.NAME,),
    )


async def _run(context: SkillContext, params: Values) -> Values:
    brief = replace(context.brief, text=str(params["task"]), said="", pictures=())
    drafted = await draft(
        context.step("draft"), brief, context.hands, (), make_window(brief, context.hands)
    )
    if drafted.plan is None or len(drafted.plan.steps) < 2:
        raise ToolFailed("It takes no plan. Do it at once.")
    steps = [
        {"id": s.id, "description": s.description, "outcome": s.outcome, "needs": list(s.needs)}
        for s in drafted.plan.steps
    ]
    made: Values = {"title": drafted.plan.title, "steps": steps}
    await context.tool(planning.NAME, made)
    return made


class _Invoked(Struct):
    skill_id: str = ""


class _Made(Struct):
    steps: tuple[Step, ...]
    title: str = ""


def read_plan(calls: Iterable[ToolCall], results: Iterable[ToolResult]) -> Plan | None:
    """Return the plan that the tool or the skill made in this round, None if there is none. Its
    title is "" if none was given."""
    known, given = tuple(calls), {one.call_id: one for one in results if not one.error}
    if (plan := planning.read_plan(known, given.values())) is not None:
        return plan
    for call in known:
        if call.name == INVOKE and call.id in given:
            asked = msgspec.json.decode(call.arguments, type=_Invoked)
            if asked.skill_id == planning.NAME:
                made = msgspec.json.decode(given[call.id].content, type=_Made)
                return Plan(title=made.title, steps=made.steps)
    return None
