"""All that is tried: for each mechanism a request, and a model that gives it something to do."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from agent_core.memory.recall import HEAD
from benchmarks.agent import limits, plans, sources
from benchmarks.agent.course import Course, Run

Work = Callable[[Course, bool], Awaitable[None]]
Gain = Literal["calls", "tokens", "tools", "right"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`fired` of a run: the mechanism did something. `gain`: what is better with it."""

    name: str
    model: Literal["good", "forgetful", "false", "repetitive", "erring", "endless", "failing"]
    work: Work
    fired: Callable[[Run], bool]
    gain: Gain


def _circles(run: Run) -> bool:
    return "[Going in circles]" in run.told


CASES = (
    Case(name="classifier", model="good", work=plans.classifier, gain="calls",
         fired=lambda run: "plan_overview" not in run.kinds),
    Case(name="planner", model="forgetful", work=plans.planner, gain="right",
         fired=lambda run: "plan_overview" in run.kinds),
    Case(name="verify", model="false", work=plans.verify, gain="right",
         fired=lambda run: "is missing." in run.told),
    Case(name="re-plan", model="false", work=plans.replan, gain="right",
         fired=lambda run: "[Planning again]" in run.told),
    Case(name="anti-repetition", model="repetitive", work=limits.repetition, gain="calls", fired=_circles),
    Case(name="error rescue", model="erring", work=limits.rescue, gain="calls",
         fired=lambda run: "status" in run.kinds),
    Case(name="budget warning", model="endless", work=limits.warning, gain="calls",
         fired=lambda run: "budget" in run.kinds),
    Case(name="budget stop", model="endless", work=limits.stop, gain="calls",
         fired=lambda run: run.calls == 21),
    Case(name="compression", model="good", work=limits.compression, gain="tokens",
         fired=lambda run: "compressed" in run.kinds),
    Case(name="fallback", model="failing", work=limits.fallback, gain="right",
         fired=lambda run: "fallback" in run.kinds),
    Case(name="memory", model="good", work=sources.memory, gain="tools",
         fired=lambda run: "memory_saved" in run.kinds and HEAD in run.told),
    Case(name="tool search", model="good", work=sources.tool_search, gain="tokens",
         fired=lambda run: "book_meeting_room: Book a meeting room." in run.told),
    Case(name="research citations", model="false", work=sources.citations, gain="right",
         fired=lambda run: sources.INVENTED not in run.told),
)  # fmt: skip
