"""A person's edits of a plan, also while it runs. Values and a pure function."""

from typing import Literal

from msgspec.structs import replace

from agent_core.orchestration.plan import MAX_STEPS, Plan, Step, problem, set_step_state
from agent_core.plan_edit import PlanEdit

TICKED = "ticked in the list"
Why = Literal["no_step", "begun", "not_over", "circle", "too_many"]
"""The reason why an edit is impossible: no such step; it has begun; it has not ended; steps would
wait for each other; the plan is long enough."""
_OVER = ("done", "failed", "skipped")


def apply_edit(plan: Plan, edit: PlanEdit) -> Plan | Why:
    """`plan` after `edit`, or why that cannot be."""
    known = {step.id: step for step in plan.steps}
    if edit.action == "add":
        return _add_step(plan, edit)
    step = known.get(edit.step)
    if step is None or (edit.before and edit.before not in known):
        return "no_step"
    match edit.action:
        case "done":
            ticked = set_step_state(plan, step.id, "done", TICKED)
            return "begun" if step.state == "done" else ticked
        case "skip":
            return "begun" if step.state in _OVER else set_step_state(plan, step.id, "skipped")
        case "retry":
            return _retry_step(plan, step) if step.state in ("failed", "skipped") else "not_over"
        case "drop":
            return "begun" if step.state != "pending" else _drop_step(plan, step)
        case "move":
            return _move_step(plan, step, edit.before)


def apply(plan: Plan, edits: tuple[PlanEdit, ...]) -> Plan:
    """Apply those of `edits` that are still possible."""
    for edit in edits:
        after = apply_edit(plan, edit)
        plan = after if isinstance(after, Plan) else plan
    return plan


def _retry_step(plan: Plan, step: Step) -> Plan:
    fresh = replace(step, state="pending", note="", tries=step.tries + 1)
    return _swap(plan, fresh)


def _swap(plan: Plan, new: Step) -> Plan:
    return replace(plan, steps=tuple(new if one.id == new.id else one for one in plan.steps))


def _add_step(plan: Plan, edit: PlanEdit) -> Plan | Why:
    if len(plan.steps) >= MAX_STEPS:
        return "too_many"
    names = {step.id for step in plan.steps}
    n = next(n for n in range(1, MAX_STEPS + 2) if f"own{n}" not in names)
    later = next((step for step in plan.steps if step.id == edit.before), None)
    if later is None:
        if edit.before:
            return "no_step"
        needs = tuple(step.id for step in plan.select("pending", "running"))
        new = Step(id=f"own{n}", description=edit.text, needs=needs, own=True)
        return replace(plan, steps=(*plan.steps, new))
    if later.state != "pending":
        return "begun"
    new = Step(id=f"own{n}", description=edit.text, needs=later.needs, own=True)
    plan = _swap(plan, replace(later, needs=(*later.needs, new.id)))
    at = [step.id for step in plan.steps].index(later.id)
    return replace(plan, steps=(*plan.steps[:at], new, *plan.steps[at:]))


def _drop_step(plan: Plan, gone: Step) -> Plan:
    """Drop a step; steps that need it need what it needed."""
    steps = tuple(
        replace(step, needs=_inherit_needs(step.needs, gone))
        for step in plan.steps
        if step.id != gone.id
    )
    return replace(plan, steps=steps)


def _inherit_needs(needs: tuple[str, ...], gone: Step) -> tuple[str, ...]:
    more = gone.needs if gone.id in needs else ()
    return tuple(dict.fromkeys(need for need in (*needs, *more) if need != gone.id))


def _move_step(plan: Plan, step: Step, before: str) -> Plan | Why:
    """Move a step. The order is kept: later steps wait for those moved before them."""
    if step.state != "pending" or step.id == before:
        return "begun"
    rest = [one for one in plan.steps if one.id != step.id]
    at = next((n for n, one in enumerate(rest) if one.id == before), len(rest))
    if at < len(rest) and rest[at].state != "pending":
        return "begun"
    if at < len(rest):
        rest[at] = replace(rest[at], needs=_join_needs(rest[at].needs, (step.id,)))
    else:
        pending = tuple(one.id for one in rest if one.state == "pending")
        step = replace(step, needs=_join_needs(step.needs, pending))
    rest.insert(at, step)
    plan = replace(plan, steps=tuple(rest))
    return "circle" if problem(_end_begun_steps(plan)) else plan


def _join_needs(needs: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*needs, *more)))


def _end_begun_steps(plan: Plan) -> Plan:
    """Return `plan` with everything begun as ended, to see what is left."""
    begun = ("running", "skipped", "failed")
    steps = tuple(
        replace(step, state="done") if step.state in begun else step for step in plan.steps
    )
    return replace(plan, steps=steps)
