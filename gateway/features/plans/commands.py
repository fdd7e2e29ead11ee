"""/todo and /plan: the running plan as people see and change it, and whether plans are shown before
they run."""

from typing import Literal, cast

from msgspec.structs import replace

from agent_core.orchestration.edits import apply_edit
from agent_core.orchestration.plan import Plan, Step
from agent_core.plan_edit import Action, PlanEdit
from agent_core.text import parse_number
from gateway.feature import Call
from gateway.features.plans.amend import amend, find_planned_turn, list_steps, rest
from gateway.roles import at_least
from gateway.texts import Key, say

_ACTIONS: dict[str, Action] = {
    "done": "done",
    "tick": "done",
    "skip": "skip",
    "retry": "retry",
    "drop": "drop",
    "remove": "drop",
    "add": "add",
    "insert": "add",
    "move": "move",
}

_DONE: dict[Action, Key] = {
    "done": "todo_ticked",
    "skip": "todo_skipped",
    "retry": "todo_retried",
    "drop": "todo_dropped",
    "add": "todo_added",
    "move": "todo_moved",
}


async def todo(call: Call) -> str:
    """The plan's steps, or one change of them."""
    context = call.context
    open_turn = await find_planned_turn(context)
    if open_turn is None:
        return say("plan_none", call.language)
    course = open_turn.fold.course
    words = call.words
    owner, access = open_turn.row.sender, context.services.access
    mine = await access.may_act_for(owner, call.command.sender, call.role)
    if not words or course is None:
        rest(context, open_turn)
        return list_steps(course, call.language)
    if not at_least(call.role, "user") or not mine:
        rest(context, open_turn)
        return say("not_yours", call.language)
    edit = read(words, course.plan.steps)
    if edit is None:
        rest(context, open_turn)
        return _explain(words, len(course.plan.steps), call.language)
    why = amend(context, open_turn, edit, call.command.sender, call.seq)
    rest(context, open_turn)
    return say(why, call.language) if why else _describe(edit, course.plan, call.language)


def _describe(edit: PlanEdit, before: Plan, language: str) -> str:
    """Describe the edit, as the card that shows it may be far above."""
    after = apply_edit(before, edit)
    old = {step.id: n for n, step in enumerate(before.steps, 1)}
    steps = after.steps if isinstance(after, Plan) else ()
    new = {step.id: n for n, step in enumerate(steps, 1)}
    name = edit.step or next((one for one in new if one not in old), "")
    words = {step.id: step.description for step in (*before.steps, *steps)}
    n = old.get(name, 0) if edit.action == "drop" else new.get(name, 0)
    return say(_DONE[edit.action], language, n=n, step=words.get(name, ""))


def _explain(words: list[str], most: int, language: str) -> str:
    """Explain why the words are no edit of a plan of `most` steps, with an example."""
    named = words[1] if len(words) > 1 and words[0].lower() in _ACTIONS else ""
    n = parse_number(named) or 0
    missing = named.isdecimal() and words[0].lower() != "add" and not 1 <= n <= most
    no_step = say("todo_no_step", language, step=named[:6], last=most) if missing else ""
    return f"{no_step} {say('todo_usage', language)}".strip()


def read(words: list[str], steps: tuple[Step, ...]) -> PlanEdit | None:
    """Parse an edit, None if it is none: `done 2`, `add what to do`, `insert 2 what to do first`,
    `move 3 1`."""
    action, rest_ = _ACTIONS.get(words[0].lower()), words[1:]
    if action is None or not rest_:
        return None
    if words[0].lower() == "add":
        return PlanEdit(action="add", text=" ".join(rest_))
    step = _find_step(rest_[0], steps)
    if step is None or (action not in ("add", "move") and len(rest_) > 1):
        return None
    if action == "add":
        text = " ".join(rest_[1:])
        return PlanEdit(action="add", text=text, before=step) if text else None
    if action == "move":
        to = parse_number(rest_[1]) if len(rest_) == 2 else None
        if not to:
            return None
        others = tuple(one for one in steps if one.id != step)
        before = others[to - 1].id if to <= len(others) else ""
        return PlanEdit(action="move", step=step, before=before)
    return PlanEdit(action=action, step=step)


def _find_step(word: str, steps: tuple[Step, ...]) -> str | None:
    n = parse_number(word) or 0
    return steps[n - 1].id if 1 <= n <= len(steps) else None


async def plan(call: Call) -> str:
    """Show or choose whether plans are reviewed before they run."""
    context = call.context
    settings = context.state.row.settings
    word = call.words[0].lower() if call.words else ""
    if word in ("on", "off"):
        settings = replace(settings, plans=cast(Literal["on", "off"], word))
        context.state.configure(settings)
    elif word:
        return say("plan_usage", call.language)
    return say("plan_on" if settings.plans == "on" else "plan_off", call.language)
