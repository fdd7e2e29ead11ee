"""A turn's plan as people see it: the plan's events and its edits, folded into one PlanView with
the buttons that make sense now. Pure."""

from typing import Literal, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from agent_core.events import PlanMade, StageEntered, StepBegan, StepEnded
from agent_core.orchestration.edits import apply
from agent_core.orchestration.plan import Plan, set_step_state
from agent_core.plan_edit import PlanEdit
from gateway.messages import button_token, plan_token
from gateway.texts import say
from gateway.views import Button, PlanState, PlanStep, PlanView

PlanEvent: TypeAlias = PlanMade | StepBegan | StepEnded | StageEntered
OPEN = ("pending", "running")
MAX_BUTTONS = 3
"""Maximum buttons of one kind: to skip steps, or to retry them."""


class Course(Struct, frozen=True, kw_only=True):
    """A running plan. `asking`: the id of the open question whether to run it, "" for none;
    `outcome`: a note on the decision; `listed`: the agent's own list, whose steps nobody can skip
    or retry."""

    plan: Plan
    listed: bool = False
    state: PlanState = "running"
    asking: str = ""
    outcome: str = ""


def apply_plan_event(course: Course | None, event: PlanEvent) -> Course | None:
    """`course` after `event`; None while there is no plan."""
    if isinstance(event, PlanMade):
        plan = Plan(title=event.title, steps=event.steps, revision=event.revision)
        course = course or Course(plan=plan)
        return replace(course, plan=plan, listed=event.listed)
    if course is None:
        return None
    match event:
        case StepBegan():
            return replace(course, plan=set_step_state(course.plan, event.id, "running"))
        case StepEnded():
            return replace(
                course, plan=set_step_state(course.plan, event.id, event.state, event.note)
            )
        case StageEntered():
            return replace(course, state="failed") if event.name == "giving_up" else course
    assert_never(event)


def apply_edit(course: Course, edit: PlanEdit) -> Course:
    """`course` after a person's edit."""
    return replace(course, plan=apply(course.plan, (edit,)))


def finish_plan(course: Course, state: Literal["done", "failed", "stopped"]) -> Course:
    """Return `course` at the end of its turn: running steps end, those not started count as
    skipped. A plan left unfinished counts as stopped, however the turn ended."""
    steps = tuple(
        replace(step, state="skipped") if step.state in ("pending", "running") else step
        for step in course.plan.steps
    )
    left, final = steps != course.plan.steps, state
    if course.state == "failed":
        final = "failed"
    elif state == "done" and left:
        final = "stopped"
    return replace(course, plan=replace(course.plan, steps=steps), state=final, asking="")


def render_plan(course: Course, turn: str, language: str) -> PlanView:
    """Render the plan as people see it."""
    runs = course.state == "running" and not course.asking and not course.listed
    steps = tuple(
        PlanStep(
            id=step.id,
            text=step.description,
            state=step.state,
            note=step.note,
            skip=plan_token(turn, "skip", step.id) if runs and step.state in OPEN else "",
        )
        for step in course.plan.steps
    )
    return PlanView(
        title=course.plan.title,
        steps=steps,
        state="open" if course.asking else course.state,
        buttons=_review(course, language) if course.asking else _buttons(course, turn, language),
        outcome=course.outcome,
        language=language,
    )


def _review(course: Course, language: str) -> tuple[Button, ...]:
    """Return the buttons of a plan that waits for its approval."""
    offers: tuple[tuple[str, Literal["plain", "good", "bad"]], ...] = (
        ("once", "good"),
        ("edit", "plain"),
        ("deny", "bad"),
    )
    labels = (say("plan_go", language), say("plan_edit", language), say("plan_cancel", language))
    return tuple(
        Button(label=label, token=button_token(course.asking, choice), style=style)
        for label, (choice, style) in zip(labels, offers, strict=True)
    )


def _buttons(course: Course, turn: str, language: str) -> tuple[Button, ...]:
    """Return the buttons of a running plan, and those to retry steps afterwards."""
    stop = Button(label=say("plan_stop", language), token=plan_token(turn, "stop"), style="bad")
    if course.listed:
        return (stop,) if course.state == "running" else ()
    numbered = [(str(n), step) for n, step in enumerate(course.plan.steps, 1)]
    failed = [(n, step.id) for n, step in numbered if step.state == "failed"]
    retry = tuple(
        Button(label=say("plan_retry", language, n=n), token=plan_token(turn, "retry", step))
        for n, step in failed[:MAX_BUTTONS]
    )
    if course.state != "running":
        return retry
    running = [(n, step.id) for n, step in numbered if step.state == "running"]
    skip = tuple(
        Button(label=say("plan_skip", language, n=n), token=plan_token(turn, "skip", step))
        for n, step in running[:MAX_BUTTONS]
    )
    edit = Button(label=say("plan_edit", language), token=plan_token(turn, "edit"))
    return (*skip, *retry, edit, stop)
