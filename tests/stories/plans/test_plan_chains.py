"""Steps begin when what they need is over, not when the others that began with them are: over
Telegram with the real gateway and model SDK, and re-run with a kill at every point."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_core.messages import Message, Text, ToolCall
from gateway.views import PlanView
from tests.fakes.lives import count_points, killed_everywhere
from tests.fakes.model_server import Call, Json, Say
from tests.fakes.world import Ledger, Life
from tests.sampling import some_and_every
from tests.stories.plan_kills_rig import PlannedAgent, purpose, story, written
from tests.stories.plan_rig import ASK, GOOD, asked, hold, pass_on, plan, step_of
from tests.stories.rig import PERSON, Rig

WHICH = {"question": "which?", "kind": "decision", "options": ["all", "some"]}
STEPS = plan(
    "hosts: List the hosts", "limits: Ask for limits", "prices < hosts: Look prices up",
    "sums < prices: Add them up", "table < sums limits: Write it",
)  # fmt: skip


def answer(body: Json) -> Say | Call:
    """Each step comes out, but limits asks a person first."""
    step = step_of(body)
    if step == "limits" and body["messages"][-1]["role"] == "user":
        return Call("ask_user", json.dumps(WHICH))
    if step.startswith("["):
        return {"[Planning]": STEPS, "[Finishing]": Say("There you are.")}[step]
    return GOOD if step == "check" else Say(f"{step} came out")


async def test_a_chain_goes_on_while_another_step_waits_for_a_person(rig: Rig) -> None:
    """Also over a crash; what needs both waits for both, and sees what both gave."""
    await rig.start()
    rig.model.script(*[answer] * 50)
    rig.telegram.say(PERSON, ASK)
    card = await rig.card()
    await rig.shows("☑ 4. Add them up")
    assert "◐ 2. Ask for limits" in rig.said()[0] and "☐ 5. Write it" in rig.said()[0]
    await rig.crash()
    await rig.start()
    rig.press(card, "all")
    await rig.shows("There you are.")
    await rig.quiet()
    assert "5/5" in rig.said()[0]
    told = Counter(asked(rig))
    steps = ("hosts", "limits", "prices", "sums", "table")
    assert [told[step] for step in steps] == [1, 2, 1, 1, 1]
    seen = {step_of(r.body): r.body["messages"] for r in rig.model.requests}
    assert _gave(seen["sums"]) == ["hosts", "prices"], "only what it builds on"
    assert _gave(seen["table"]) == ["hosts", "limits", "prices", "sums"], "in the plan's order"


def _gave(messages: list[Json]) -> list[str]:
    said = [str(one.get("content")) for one in messages if one["role"] == "assistant"]
    return [one.split()[0] for one in said if one.endswith("came out")]


async def test_a_wish_is_heard_before_the_next_step_of_a_chain(rig: Rig) -> None:
    await rig.start()
    rig.model.script(*[answer] * 50)
    await hold(rig, ASK)
    pass_on(rig)
    await rig.until(lambda: len(rig.model.requests) == 3)
    await rig.shows("Look prices up")
    rig.telegram.say(PERSON, "/todo drop 3")
    await rig.until(lambda: "Look prices up" not in rig.said()[0])
    assert rig.model.gate is not None
    rig.model.gate.set()
    rig.model.gate = None
    rig.press(await rig.card(), "some")
    await rig.shows("There you are.")
    await rig.quiet()
    assert "prices" not in asked(rig) and "4/4" in rig.said()[0]


PAIRS = plan(
    "left: Go left", "right: Go right", "l1 < left: Then left", "r1 < right: Then right",
    "l2 < l1: Left again", "both < r1 l2: Meet", "spare < both: Not needed",
)  # fmt: skip


async def test_a_chain_that_had_to_wait_twice_goes_on(rig: Rig) -> None:
    """A wish keeps all chains from going on; in the next wave a step waits in line once more."""
    await rig.start()

    def pairs(body: Json) -> Say | Call:
        return PAIRS if step_of(body) == "[Planning]" else answer(body)

    rig.model.script(*[pairs] * 50)
    await hold(rig, ASK)
    pass_on(rig)
    await rig.until(lambda: len(rig.model.requests) == 3)
    await rig.shows("Not needed")
    rig.telegram.say(PERSON, "/todo drop 7")
    await rig.until(lambda: "Not needed" not in rig.said()[0])
    assert rig.model.gate is not None
    rig.model.gate.set()
    rig.model.gate = None
    await rig.shows("There you are.")
    await rig.quiet()
    assert "6/6" in rig.said()[0]
    told = Counter(asked(rig))
    steps = ("left", "right", "l1", "r1", "l2", "both")
    assert [told[step] for step in steps] == [1] * 6, told


async def test_after_a_failure_no_step_of_another_chain_begins(rig: Rig) -> None:
    """The plan is made anew first; what was under way ends."""
    await rig.start()

    def bad(body: Json) -> Say | Call:
        step, last = step_of(body), body["messages"][-1]
        if step == "hosts" and last["role"] == "user":
            return Call("ask_user", json.dumps(WHICH))
        if step == "check" and "Ask for limits" in str(last["content"]):
            return Say('{"ok": false, "why": "no host"}')
        if step == "[Planning again]":
            return plan("again: Try again")
        return Say("limits came out") if step == "limits" else answer(body)

    rig.model.script(*[bad] * 50)
    rig.telegram.say(PERSON, ASK)
    await rig.shows("✕ 2. Ask for limits")
    rig.press(await rig.card(), "all")
    await rig.shows("There you are.")
    await rig.quiet()
    assert "✕ 2. Ask for limits (no host)" in rig.said()[0] and "☑ 6. Try again" in rig.said()[0]
    assert "☑ 1. List the hosts" in rig.said()[0]
    assert not {"prices", "sums", "table"} & set(asked(rig))


# ---- a kill at every point ------------------------------------------------------------------

CHAINS = {
    "s1": ("note", ()),
    "s2": ("deploy", ()),
    "s3": ("look", ("s1",)),
    "s4": ("add", ("s3",)),
    "s5": ("look add", ("s4", "s2")),
}


class ChainedAgent(PlannedAgent):
    """Two chains, one of which waits for an approval, and a step that needs both."""

    def _script(self, messages: Sequence[Message]) -> list[Text | ToolCall]:
        match purpose(messages).split("/"):
            case ["plan"]:
                return [Text(text=written(CHAINS))]
            case ["check", _]:
                return [Text(text='{"ok": true}')]
            case [step, "0"] if step in CHAINS:
                word = CHAINS[step][0]
                return [ToolCall(id=step, name=word, arguments=json.dumps({"text": word}))]
        return super()._script(messages)


def prepare(life: Life) -> None:
    life.agent = ChainedAgent(life.ledger, life.points, life.folder)


def check(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    screen = ledger.read_screen()
    shown = [view for view in screen.values() if isinstance(view, PlanView)]
    marks = {step.id: step.state for step in shown[-1].steps}
    assert marks == dict.fromkeys(CHAINS, "done"), f"{label}: {marks}"
    tools = Counter(line["text"] for line in ledger.all("tool"))
    assert tools["note"] <= 1 and tools["deploy"] <= 1, f"{label}: {tools}"
    thoughts = Counter(line["of"] for line in ledger.all("thought"))
    again = {of for of, count in thoughts.items() if count > 1}
    assert len(again) <= 2 and max(thoughts.values()) <= 2, f"{label}: {thoughts}"
    order = [line["of"].partition("/")[0] for line in ledger.all("thought")]
    firsts = {step: order.index(step) for step in CHAINS}
    assert firsts["s1"] < firsts["s3"] < firsts["s4"] < firsts["s5"], f"{label}: {order}"
    last = max(n for n, step in enumerate(order) if step in ("s2", "s4"))
    assert last < firsts["s5"], f"{label}: {order}"


@pytest.mark.timeout(600)
@some_and_every()
def test_a_kill_at_every_point_of_two_chains(some: int) -> None:
    points = count_points(story, prepare)
    assert points["count"] > 80, points
    killed_everywhere(points, story, check, prepare, some=some)
