"""A plan that a person approves and changes, re-run with a kill at every point, on both stores: each
edit counts once, what was skipped never runs, and nothing is lost or doubled."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_core.messages import Message, Text, ToolCall, ToolResult
from agent_core.orchestration.brief import Brief
from gateway.messages import Conversation
from gateway.store.rows import ConversationSettings
from gateway.views import PlanView
from gateway.views import ReplyView as Answer
from tests.fakes.lives import Prepare, count_points, killed_everywhere
from tests.fakes.world import Ledger, Life, ScriptedAgent
from tests.sampling import ALL, SOME
from tests.stories.kills_rig import assert_clean, finals, open_card
from tests.stories.plan_kills_rig import purpose, written

STEPS = {
    "s1": ("note", ()),
    "s2": ("look", ("s1",)),
    "s3": ("deploy", ("s1",)),
    "s4": ("add", ("s2", "s3")),
}


class EditedAgent(ScriptedAgent):
    """Shows its plan first. A step's tool is its first word."""

    def brief(self, conversation: Conversation, settings: ConversationSettings, text: str) -> Brief:
        return replace(super().brief(conversation, settings, text), route="planned", review=True)

    def _script(self, messages: Sequence[Message]) -> list[Text | ToolCall]:
        match purpose(messages).split("/"):
            case ["plan"]:
                return [Text(text=written(STEPS))]
            case ["check", _]:
                return [Text(text='{"ok": true}')]
            case ["final"]:
                return [Text(text="all is done")]
            case ["own1", "0"]:
                return [ToolCall(id="own", name="note", arguments=json.dumps({"text": "own"}))]
            case [step, "0"]:
                word = STEPS[step][0]
                return [ToolCall(id=step, name=word, arguments=json.dumps({"text": word}))]
            case [step, _]:
                gave = [p.content for p in messages[-1].parts if isinstance(p, ToolResult)]
                return [Text(text=f"{step} gave {'; '.join(gave)}")]
        raise AssertionError(messages[-1])


def prepare(life: Life) -> None:
    life.agent = EditedAgent(life.ledger, life.points, life.folder)


def plan(life: Life, label: str) -> str:
    """The token of the plan's button whose label begins so, "" if it has none."""
    plans = [v for v in life.screen().values() if isinstance(v, PlanView)]
    buttons = plans[-1].buttons if plans else ()
    return next((b.token for b in buttons if b.label.startswith(label)), "")


def steps(life: Life) -> int:
    plans = [v for v in life.screen().values() if isinstance(v, PlanView)]
    return len(plans[-1].steps) if plans else 0


async def story(life: Life) -> None:
    await life.say("m1", "plan this")
    await life.until(lambda: plan(life, "Go") or open_card(life) or finals(life))
    if plan(life, "Go"):
        await life.command("c1", "todo insert 4 note it")
        await life.until(lambda: steps(life) == 5)
        await life.press("p1", plan(life, "Go"))
    await life.until(lambda: (open_card(life) and plan(life, "Skip 3")) or finals(life))
    if open_card(life) and (token := plan(life, "Skip 3")):
        await life.press("p2", token)
    await life.until(lambda: finals(life))
    await life.quiet()
    await assert_clean(life, 1)


def check(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    screen = ledger.read_screen()
    plans = [v for v in screen.values() if isinstance(v, PlanView)]
    final = [v for v in screen.values() if isinstance(v, Answer) and v.text == "all is done"]
    assert 1 <= len(final) <= 2 and len([v for v in final if not v.note]) <= 1, f"{label}: {final}"
    marks = {step.id: step.state for step in plans[-1].steps}
    expected = {"s1": "done", "s2": "done", "s3": "skipped", "own1": "done", "s4": "done"}
    assert marks == expected, f"{label}: {marks}"
    assert plans[-1].buttons == () and plans[-1].state == "done", f"{label}: {plans[-1]}"
    tools = Counter(line["text"] for line in ledger.all("tool"))
    assert not tools["deploy"], f"{label}: what was skipped ran"
    assert tools["note"] <= 1 and tools["own"] <= 1, f"{label}: {tools}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("prepare_store", "some"),
    [
        pytest.param("sqlite", SOME, marks=pytest.mark.sampled),
        pytest.param("sqlite", ALL, marks=pytest.mark.slow),
        pytest.param("redis", ALL, marks=pytest.mark.slow),
    ],
    indirect=["prepare_store"],
)
def test_a_kill_at_every_point_of_a_plan_that_is_changed(prepare_store: Prepare, some: int) -> None:

    def made(life: Life) -> None:
        prepare_store(life)
        prepare(life)

    points = count_points(story, made)
    assert points["count"] > 80, points
    killed_everywhere(points, story, check, made, some=some)
