"""A turn's plan as people see it: a pure fold of the plan's events into one PlanView."""

from typing import TypeAlias, assert_never

from msgspec.structs import replace

from agent_core.events import PlanMade, StageEntered, StepBegan, StepEnded
from agent_core.orchestration.plan import Step
from gateway.views import PlanState, PlanStep, PlanView, StepState

PlanEvent: TypeAlias = PlanMade | StepBegan | StepEnded | StageEntered


def planned(view: PlanView | None, event: PlanEvent, language: str) -> PlanView | None:
    """`view` after `event`; None while there is no plan."""
    if isinstance(event, PlanMade):
        steps = tuple(map(_shown, event.steps))
        return PlanView(title=event.title, steps=steps, language=language)
    if view is None:
        return None
    match event:
        case StepBegan():
            return _with(view, event.id, "running")
        case StepEnded():
            return _with(view, event.id, event.state, event.note)
        case StageEntered():
            return replace(view, state="failed") if event.name == "giving_up" else view
    assert_never(event)


def ended(view: PlanView, state: PlanState) -> PlanView:
    """`view` when its turn is over: nothing of it runs any more, what never ran was skipped. A
    plan that the turn left on its way is stopped, whatever became of the turn."""
    steps = tuple(
        replace(step, state="skipped") if step.state in ("pending", "running") else step
        for step in view.steps
    )
    if view.state == "failed":
        state = "failed"
    elif state == "done" and steps != view.steps:
        state = "stopped"
    return replace(view, steps=steps, state=state)


def _shown(step: Step) -> PlanStep:
    return PlanStep(id=step.id, text=step.description, state=step.state, note=step.note)


def _with(view: PlanView, step_id: str, state: StepState, note: str = "") -> PlanView:
    steps = tuple(
        replace(step, state=state, note=note) if step.id == step_id else step for step in view.steps
    )
    return replace(view, steps=steps)
