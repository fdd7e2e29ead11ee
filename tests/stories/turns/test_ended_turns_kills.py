"""Turns that the gateway ends because their model gets nowhere, re-run with a kill at every point: it
repeats one call for ever, its call is cut off each time, or all its calls fail, and no plan is found
for the rescue. The person is told once why, the model is asked a bounded number of times, and no
call runs twice."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from agent_core.context.stuck import ERRORS, SAME_RESULTS
from agent_core.messages import Message, Text, ToolCall, text_of
from agent_core.models.port import ModelReply, ModelRequest, OnDelta
from agent_core.orchestration.cut_answers import MAX_CONTINUED
from gateway.views import Notice, ReplyView, View
from tests.fakes.lives import Prepare, count_points, killed_everywhere
from tests.fakes.world import Ledger, Life, ScriptedAgent
from tests.stories.kills_rig import ON_BOTH_STORES, assert_clean

WORDS = "I write it now. "
PLANS_ASKED = 2
"""Times that a plan is asked for, where none is understood."""
ENDS = {
    "circle": "I made no progress (the same call",
    "fail": f"I made no progress ({ERRORS} errors in a row",
    "cut": "reached its output limit in the middle of a tool call",
}
"""What is told, by the word of the message."""
ASKED = {
    "circle": SAME_RESULTS + PLANS_ASKED,
    "fail": ERRORS + PLANS_ASKED,
    "cut": MAX_CONTINUED + 1,
}
"""Times that the model is asked, without a kill."""


class HopelessAgent(ScriptedAgent):
    """Gets nowhere, in the way of the message's word."""

    async def complete(self, name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        reply = await super().complete(name, request, on_delta)
        if text_of(reply) != WORDS:
            return reply
        given = {"model": "m", "provider": "scripted", "finish": "length", "cut_call": "note"}
        return ModelReply(parts=reply.parts, **given)  # type: ignore[arg-type]

    def _script(self, messages: Sequence[Message]) -> list[Text | ToolCall]:
        if any("[Planning]" in text_of(one) for one in messages):
            return [Text(text="I have no plan for that.")]
        done = sum(1 for one in messages if one.role == "tool")
        match text_of(messages[0]).split("\n")[0]:
            case "circle":
                return [ToolCall(id=f"c{done}", name="note", arguments='{"text": "same"}')]
            case "fail":
                arguments = json.dumps({"text": f"try {done}"})
                return [ToolCall(id=f"c{done}", name="missing", arguments=arguments)]
            case _:
                return [Text(text=WORDS)]


def list_ends(screen: dict[str, View], word: str) -> list[Notice]:
    return [v for v in screen.values() if isinstance(v, Notice) and ENDS[word] in v.text]


def make_check(word: str) -> Callable[[Path, str], None]:
    def check(folder: Path, label: str) -> None:
        ledger = Ledger(folder / "ledger.jsonl")
        screen = ledger.read_screen()
        ends = list_ends(screen, word)
        plain = [one for one in ends if "Possibly sent twice" not in one.text]
        assert len(plain) <= 1 <= len(ends) <= 2, f"{label}: {screen}"
        growing = [
            one
            for one in screen.values()
            if isinstance(one, ReplyView) and one.state == "streaming"
        ]
        # one that was sent just before the kill: nobody knows the number of that message
        assert len(growing) <= (word == "cut"), f"{label}: {growing}"
        keys = Counter(line["key"] for line in ledger.all("tool"))
        assert max(keys.values(), default=1) == 1, f"{label}: {keys}"
        # an outcome that a kill left unknown is another result: the count begins anew behind it
        again = SAME_RESULTS if word == "circle" else 1
        asked = len(ledger.all("model"))
        assert ASKED[word] <= asked <= ASKED[word] + again, f"{label}: {asked}"
        assert len(keys) <= 2 * SAME_RESULTS, f"{label}: {keys}"

    return check


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("word", ENDS)
@ON_BOTH_STORES
def test_a_kill_at_every_point_of_a_turn_that_gets_nowhere(
    prepare_store: Prepare, word: str
) -> None:
    async def story(life: Life) -> None:
        await life.say("m1", word)
        await life.until(lambda: list_ends(life.screen(), word))
        await life.quiet()
        await assert_clean(life, 1)

    def prepare(life: Life) -> None:
        prepare_store(life)
        life.agent = HopelessAgent(life.ledger, life.points, life.folder)
        life.agent.delays["growing"] = 0.02 if word == "cut" else 0

    points = count_points(story, prepare)
    assert points["count"] > 10, points
    killed_everywhere(points, story, make_check(word), prepare)
