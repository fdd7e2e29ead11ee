"""A planned turn re-run with a kill at every point: steps at once, an approval inside a step, a
check that fails, a re-plan. Nothing is lost or doubled, no ended step is done again, and the same
checklist is edited on."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_core.context.limits import ContextLimits
from agent_core.messages import Message, Text, ToolCall, text_of
from agent_core.models.port import ModelReply, ModelRequest, OnDelta
from agent_core.orchestration.brief import Brief
from gateway.messages import Conversation
from gateway.store.rows import ConversationSettings
from gateway.views import PlanView
from gateway.views import ReplyView as Answer
from tests.fakes.lives import count_points, killed_at, killed_everywhere
from tests.fakes.world import Ledger, Life, ScriptedAgent
from tests.sampling import some_and_every
from tests.stories.plan_kills_rig import FIRST, PlannedAgent, story

AT_ONCE = {"s2/0", "s2/2", "check/look add", "s3/0", "s3/2", "check/deploy"}
"""What two branches may ask at the same time."""


def prepare(life: Life) -> None:
    life.agent = PlannedAgent(life.ledger, life.points, life.folder)


def check(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    sends = ledger.all("send")
    screen = ledger.read_screen()
    final = [v for v in screen.values() if isinstance(v, Answer) and v.text == "all is done"]
    plans = [v for v in screen.values() if isinstance(v, PlanView)]
    assert len([v for v in final if not v.note]) <= 1 <= len(final), f"{label}: {final}"
    told = [line for line in sends if line["view"]["kind"] == "notice"]
    count = len(sends) - bool(told)
    assert count in (4, 5), f"{label}: plan, activity, card, answer: {count}"
    assert len(plans) == 1 or count == 5, f"{label}: {plans}"
    marks = {step.id: step.state for step in plans[-1].steps}
    expected = {"s1": "done", "s2": "failed", "s3": "done", "s5": "done", "s4": "done"}
    assert marks == expected, f"{label}: {marks}"
    assert plans[-1].state == "done"
    tools = Counter(line["text"] for line in ledger.all("tool"))
    assert tools["note"] <= 1 and tools["deploy"] <= 1, f"{label}: {tools}"
    thoughts = Counter(line["of"] for line in ledger.all("thought"))
    again = {of: count for of, count in thoughts.items() if count > 1}
    most = 2 if again.keys() <= AT_ONCE else 1
    assert len(again) <= most, f"{label}: only what was under way is asked again: {again}"
    assert max(again.values(), default=2) == 2, f"{label}: {again}"
    assert not backwards(ledger), f"{label}: {backwards(ledger)}"


def backwards(ledger: Ledger) -> list[str]:
    """Work of a step that others had already built upon."""
    order = [line["of"].partition("/")[0] for line in ledger.all("thought")]
    after = {"plan": set(FIRST), "s1": {"s2", "s3"}, "s2": {"replan"}, "s3": {"replan"}}
    after |= {"replan": {"s5"}, "s5": {"s4"}, "s4": {"final"}}
    return [
        f"{one} after {later}"
        for n, one in enumerate(order)
        for later in order[:n]
        if later in after.get(one, set())
    ]


@pytest.mark.timeout(600)
@some_and_every()
def test_a_kill_at_every_point_of_a_planned_turn(some: int) -> None:
    points = count_points(story, prepare)
    assert points["count"] > 80, points
    killed_everywhere(points, story, check, prepare, some=some)


# ---- the same turn, where the model sees little at once --------------------------------------


class ShortPlannedAgent(PlannedAgent):
    """What steps find is long, so that the thread of the plan is summarised in its middle."""

    def brief(self, conversation: Conversation, settings: ConversationSettings, text: str) -> Brief:
        room = ContextLimits(limit=2_500, keep=3)
        return replace(super().brief(conversation, settings, text), room=room)

    async def complete(self, name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        if not is_summary(request.messages):
            return await super().complete(name, request, on_delta)
        self._ledger.note("summary", of=text_of(request.messages[0]))
        return await ScriptedAgent.complete(self, name, request, on_delta)

    def _script(self, messages: Sequence[Message]) -> list[Text | ToolCall]:
        if is_summary(messages):
            return [Text(text="what was found so far")]
        made = super()._script(messages)
        long = isinstance(made[0], Text) and " gave " in made[0].text
        return [Text(text=f"{made[0].text} {'x' * 3_000}")] if long else made


def is_summary(messages: Sequence[Message]) -> bool:
    return len(messages) == 1 and text_of(messages[0]).startswith("user: ")


def prepare_short(life: Life) -> None:
    life.agent = ShortPlannedAgent(life.ledger, life.points, life.folder)


async def short_story(life: Life) -> None:
    """What was said is kept in a row of the transcript, what is seen of it in another."""
    await story(life, rows=2)


def check_short(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    asked = Counter(line["of"] for line in ledger.all("summary"))
    assert asked, f"{label}: nothing was summarised"
    assert sum(asked.values()) <= len(asked) + 1, f"{label}: only what was under way: {asked}"
    check(folder, label)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_kill_at_every_point_of_a_planned_turn_that_is_summarised() -> None:
    points = count_points(short_story, prepare_short)
    assert points["count"] > 80, points
    killed_everywhere(points, short_story, check_short, prepare_short)


def test_a_planned_turn_is_summarised_in_its_middle() -> None:
    """The story of the kills, once without one."""
    points = count_points(short_story, prepare_short)
    killed_at([{points["count"] // 2}], short_story, check_short, "in the middle", prepare_short)
