"""A turn reported as gather, plan, act and verify: a fold over its events, with times.

The results are a planned turn's steps, and any other turn's tool calls; the answer is the last one.
"""

from collections.abc import Iterable
from typing import Literal, TypedDict

from agent_core import ambient
from agent_core.events import (
    AgentEvent,
    Completed,
    ErrorMet,
    PlanMade,
    StageEntered,
    StepBegan,
    StepEnded,
    ToolAnswered,
    ToolCalled,
)
from agent_core.orchestration.plan import Step

STEP, ANSWER = "step", "answer"
"""Stand for a tool's name, of a plan's step and of the answer."""
LIMIT = "The turn's rounds are used up: the answer is a summary of what was done."
FAILED = "No answer came."


class Planned(TypedDict):
    """A planned action. `action`: a step's id, or a call's."""

    tool: str
    action: str
    description: str


class Done(TypedDict):
    """The result of an action. `execution_time` in seconds, also of a failed one."""

    tool: str
    action: str
    success: bool
    data: str | None
    error: str | None
    execution_time: float


class Issue(TypedDict):
    """A failure."""

    tool: str
    action: str
    error: str | None


class Verification(TypedDict):
    """A turn in numbers. `overall_success`: there is an answer, and the plan, if there was one, was
    not given up; a failed call that was made good does not count. `total_execution_time`: the sum
    of the results'."""

    overall_success: bool
    successful_steps: int
    failed_steps: int
    total_execution_time: float
    issues: list[Issue]
    summary: str


class TurnRecorder:
    """Folds the events of one turn into a plan, results and a verification."""

    def __init__(self, request: str) -> None:
        self._request = request
        self._steps: tuple[Step, ...] = ()
        self._calls: list[Planned] = []
        self._began: dict[str, float] = {"": ambient.monotonic()}
        self._results: list[tuple[Literal["step", "call"], Done]] = []
        self._errors: list[str] = []
        self._given_up = False
        self._end: Done | None = None

    def take(self, event: AgentEvent) -> None:
        """Note an event that happens now."""
        match event:
            case PlanMade():
                self._steps = event.steps
            case StepBegan():
                self._began[f"step:{event.id}"] = ambient.monotonic()
            case StepEnded():
                if event.state != "skipped":
                    self._note_result("step", STEP, event.id, event.state == "done", event.note)
            case ToolCalled():
                self._began[f"call:{event.call_id}"] = ambient.monotonic()
                told = f"{event.name} {event.arguments}"
                row = Planned(tool=event.name, action=event.call_id, description=told)
                self._calls.append(row)
            case ToolAnswered():
                self._note_result("call", event.name, event.call_id, not event.error, event.content)
            case StageEntered():
                self._given_up = self._given_up or event.name == "giving_up"
            case ErrorMet():
                self._errors.append(event.text)
            case Completed():
                self._record_end(event)
            case _:
                pass

    @property
    def plan(self) -> list[Planned]:
        """The steps of the newest plan, else the calls; then the answer."""
        steps = [Planned(tool=STEP, action=s.id, description=s.description) for s in self._steps]
        answer = Planned(tool=ANSWER, action="reply", description=self._request)
        return [*(steps if self._steps else self._calls), answer]

    @property
    def results(self) -> list[Done]:
        """The results of all that was begun."""
        kind = "step" if self._steps else "call"
        rows = [row for of, row in self._results if of == kind]
        return rows if self._end is None else [*rows, self._end]

    def verify(self) -> Verification:
        """The results counted."""
        answered = self._end is not None and self._end["success"]
        return summarize_results(self.results, answered and not self._given_up)

    def _note_result(
        self, of: Literal["step", "call"], tool: str, action: str, ok: bool, said: str
    ) -> None:
        row = _row(tool, action, ok, said, self._measure_since(f"{of}:{action}"))
        self._results.append((of, row))

    def _record_end(self, event: Completed) -> None:
        ok = event.finish == "stop"
        why = LIMIT if event.finish == "limit" else "; ".join(dict.fromkeys(self._errors)) or FAILED
        whole = self._measure_since("")
        spent = sum(row["execution_time"] for row in self.results)
        self._end = _row(ANSWER, "reply", ok, event.text, max(0.0, whole - spent))
        self._end["error"] = None if ok else why

    def _measure_since(self, key: str) -> float:
        now = ambient.monotonic()
        return now - self._began.get(key, now)


def summarize_results(results: Iterable[Done], overall: bool) -> Verification:
    """Summarise `results`."""
    rows = list(results)
    failed = [row for row in rows if not row["success"]]
    good = len(rows) - len(failed)
    return Verification(
        overall_success=overall,
        successful_steps=good,
        failed_steps=len(failed),
        total_execution_time=sum(row["execution_time"] for row in rows),
        issues=[Issue(tool=r["tool"], action=r["action"], error=r["error"]) for r in failed],
        summary=f"Executed {len(rows)} steps: {good} successful, {len(failed)} failed",
    )


def _row(tool: str, action: str, ok: bool, said: str, seconds: float) -> Done:
    return Done(
        tool=tool,
        action=action,
        success=ok,
        data=said or None if ok else None,
        error=None if ok else said or FAILED,
        execution_time=seconds,
    )
