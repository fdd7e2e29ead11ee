"""The tool todo: a list that the agent keeps for itself while it works, seen by people as a
checklist.

It is no plan: nothing is worked off or checked by it. In a step of a plan, the plan is the list.
"""

import asyncio
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from agent_core.context.todo import write
from agent_core.errors import ToolFailed
from agent_core.events import PlanMade, TodoChanged
from agent_core.orchestration.brief import Brief, Hands
from agent_core.orchestration.plan import MAX_STEPS, Plan, Step, checklist
from agent_core.scope import Scope
from agent_core.tools.contract import Tool
from agent_core.tools.turn.tool import TurnTool

NAME = "todo"
WITHIN = "This is a step of a plan, and the plan is the list: do the step."
EMPTY = "The list is empty."


class TodoItem(BaseModel):
    """One thing to do."""

    text: str = Field(min_length=1, max_length=300)
    state: Literal["pending", "running", "done", "skipped"] = "pending"


class TodoArguments(BaseModel):
    """Arguments of todo."""

    items: list[TodoItem] | None = Field(
        default=None, max_length=MAX_STEPS, description="The whole list anew; none: read it."
    )


def todo_tool() -> Tool:
    """Make todo; it only changes what people see of the turn, so nobody is asked."""
    return TurnTool(
        name=NAME,
        description="Keep a list of what is to be done in this turn, which the person sees as a "
        "checklist. Give the whole list each time, with what is done, or nothing to read it.",
        summary="a checklist for this turn",
        arguments=TodoArguments,
        repetition="idempotent",
        access="person",
        run_in_turn=_update,
        polls=True,
    )


async def _update(wanted: TodoArguments, scope: Scope, brief: Brief, hands: Hands) -> str:
    if not brief.plans:
        raise ToolFailed(WITHIN)
    if wanted.items is None:
        return await scope.once("list", partial(_show_list, scope), kind=str)
    steps = tuple(
        Step(id=str(n), description=" ".join(item.text.split()), state=item.state)
        for n, item in enumerate(wanted.items, 1)
    )
    plan = Plan(title=brief.choose_title(), steps=steps)
    told = checklist(plan) or EMPTY
    scope.emit(PlanMade(title=plan.title, steps=plan.steps, listed=True))
    scope.emit(TodoChanged(text=told))
    put = partial(asyncio.to_thread, write, Path(brief.workspace), scope.turn_id, plan)
    await scope.once("copy", put, kind=bool)
    return told


def _show_list(scope: Scope) -> str:
    newest = scope.latest(TodoChanged)
    return newest.text if newest is not None else EMPTY
