"""A research as people see it: its stages as a checklist, its sources as lines of the activity.
Pure."""

from typing import Literal

from msgspec.structs import replace

from agent_core.events import ResearchMoved, ResearchStage, SourceFound
from gateway.texts import Key, say
from gateway.views import Activity, PlanStep, PlanView, ToolLine, View

_STAGES: dict[ResearchStage, Key] = {
    "init_config": "research_init",
    "search_loop": "research_search",
    "analyze": "research_analyze",
    "synthesize": "research_synthesize",
    "write_report": "research_write",
}
_COUNTED: dict[ResearchStage, Key] = {
    "search_loop": "research_sources",
    "analyze": "research_findings",
}


def apply_research_event(view: View | None, event: ResearchMoved, language: str) -> PlanView:
    """`view` after `event`; another research in the same turn begins it anew."""
    if not isinstance(view, PlanView) or (
        event.stage == "init_config" and event.state == "running"
    ):
        steps = tuple(PlanStep(id=stage, text=say(key, language)) for stage, key in _STAGES.items())
        view = PlanView(title=event.title, steps=steps, language=language)
    counted = _COUNTED.get(event.stage) if event.state == "done" else None
    note = say(counted, language, n=event.count) if counted is not None else ""
    steps = tuple(
        replace(step, state=event.state, note=note) if step.id == event.stage else step
        for step in view.steps
    )
    over = all(step.state == "done" for step in steps)
    state: Literal["done", "running"] = "done" if over else "running"
    return replace(view, title=event.title or view.title, steps=steps, state=state)


def finish_research(
    view: View | None, state: Literal["done", "failed", "stopped"]
) -> PlanView | None:
    """Return the view at the end of its turn: steps not started count as skipped."""
    if not isinstance(view, PlanView):
        return None
    if view.state == "done":
        return view
    steps = tuple(
        replace(step, state="skipped") if step.state in ("pending", "running") else step
        for step in view.steps
    )
    return replace(view, steps=steps, state="stopped" if state == "done" else state)


def add_source(activity: Activity, event: SourceFound) -> Activity:
    """`activity` with a line for one more page."""
    line = ToolLine(
        call_id=event.url,
        tool="read_page" if "://" in event.url else "read_file",
        summary=event.title or event.url,
        state="failed" if event.why else "done",
        output=event.why,
    )
    return replace(activity, lines=(*activity.lines, line))
