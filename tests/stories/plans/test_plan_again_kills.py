"""A plan that failed is tried again by a press, pressed twice, re-run with a kill at every point, on
both stores: one turn comes of it, and the old card is over as soon as the new one has begun."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_core.messages import Message, Text, ToolCall, ToolResult, text_of
from agent_core.orchestration.brief import Brief
from gateway.messages import Conversation
from gateway.store.rows import ConversationSettings
from gateway.texts import say
from gateway.views import PlanView
from gateway.views import ReplyView as Answer
from tests.fakes.lives import Prepare, count_points, killed_everywhere
from tests.fakes.world import Ledger, Life, ScriptedAgent, _view
from tests.sampling import ALL, SOME
from tests.stories.kills_rig import assert_clean, finals
from tests.stories.plan_kills_rig import purpose, written

FAILS = {"s1": ("note", ()), "s2": ("look", ("s1",))}
WORKS = {"t1": ("add", ()), "t2": ("look", ("t1",))}
OLD = say("plan_retried", n=1)


class SecondTry(ScriptedAgent):
    """Its first plan fails for good, the one after it does not."""

    def brief(self, conversation: Conversation, settings: ConversationSettings, text: str) -> Brief:
        return replace(super().brief(conversation, settings, text), route="planned")

    def _script(self, messages: Sequence[Message]) -> list[Text | ToolCall]:
        again = any("try this again" in text_of(one) for one in messages)
        match purpose(messages).split("/"):
            case ["plan"]:
                return [Text(text=written(WORKS if again else FAILS))]
            case ["replan"]:
                return [Text(text='{"steps": []}')]
            case ["check", words]:
                return [Text(text=json.dumps({"ok": words != "note", "why": "wrong"}))]
            case ["final"]:
                return [Text(text="now it did" if again else "it did not work")]
            case [step, "0"]:
                word = (FAILS | WORKS)[step][0]
                return [ToolCall(id=step, name=word, arguments=json.dumps({"text": word}))]
            case [step, _]:
                gave = [p.content for p in messages[-1].parts if isinstance(p, ToolResult)]
                return [Text(text=f"{step} gave {'; '.join(gave)}")]
        raise AssertionError(messages[-1])


def old(life: Life) -> PlanView:
    """The first plan's card: the last message of it, where a kill left two."""
    cards = [view for view in life.screen().values() if isinstance(view, PlanView)]
    return [view for view in cards if view.steps[0].id == "s1"][-1]


def said(life: Life, text: str) -> bool:
    return any(answer.text == text for answer in finals(life))


async def story(life: Life) -> None:
    await life.say("m1", "plan this")
    await life.until(lambda: said(life, "it did not work") and old(life).state == "failed")
    if buttons := old(life).buttons:
        assert [one.label for one in buttons] == ["Retry 1"]
        await life.press("p1", buttons[0].token)
        await life.press("p2", buttons[0].token)
    await life.until(lambda: OLD in old(life).outcome)
    await life.until(lambda: said(life, "now it did"))
    await life.quiet()
    await assert_clean(life, 2)


def prepare(life: Life) -> None:
    life.agent = SecondTry(life.ledger, life.points, life.folder)


def check(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    lines = [line for line in ledger.all() if line["what"] in ("send", "edit")]
    screen = {line["id"]: _view(json.dumps(line["view"]).encode()) for line in lines}
    shown = [view for view in screen.values() if isinstance(view, PlanView)]
    was = [view for view in shown if view.steps[0].id == "s1"]
    assert was[-1].buttons == () and OLD in was[-1].outcome, f"{label}: {was}"
    new = [view for view in shown if view.steps[0].id == "t1"]
    assert new and new[-1].state == "done" and not new[-1].buttons, f"{label}: {shown}"
    final = [v for v in screen.values() if isinstance(v, Answer) and v.text == "now it did"]
    assert len([v for v in final if not v.note]) <= 1 <= len(final), f"{label}: {final}"
    tools = Counter(line["text"] for line in ledger.all("tool"))
    assert tools["note"] <= 1, f"{label}: {tools}"
    over, began = None, None
    for n, line in enumerate(lines):
        view = _view(json.dumps(line["view"]).encode())
        if isinstance(view, PlanView) and OLD in view.outcome and over is None:
            over = n
        if isinstance(view, Answer) and view.text == "now it did" and began is None:
            began = n
    assert over is not None and began is not None and over < began, f"{label}: {over} {began}"


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
def test_a_kill_at_every_point_of_a_plan_that_is_tried_again(
    prepare_store: Prepare, some: int
) -> None:

    def made(life: Life) -> None:
        prepare_store(life)
        prepare(life)

    points = count_points(story, made)
    assert points["count"] > 60, points
    killed_everywhere(points, story, check, made, some=some)
