"""A turn whose model calls are used up, killed at every third point: asked for a summary the model
calls once more, so the turn says alone that it ended, and no call of the model that is on record is
made again."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_core.orchestration.brief import Brief
from gateway.messages import Conversation
from gateway.store.rows import ConversationSettings
from gateway.views import Notice, ReplyView, View
from tests.fakes.lives import count_points, killed_everywhere
from tests.fakes.world import Ledger, Life, ScriptedAgent
from tests.sampling import some_and_every
from tests.stories.kills_rig import assert_clean


class ShortAgent(ScriptedAgent):
    """May call its model three times a turn."""

    def brief(self, conversation: Conversation, settings: ConversationSettings, text: str) -> Brief:
        return replace(super().brief(conversation, settings, text), max_turns=3)


def prepare(life: Life) -> None:
    life.agent = ShortAgent(life.ledger, life.points, life.folder)


async def story(life: Life) -> None:
    await life.say("m1", "do note|add|look|look|look")
    await life.until(lambda: list_limits(life.screen()))
    await life.quiet()
    await assert_clean(life, 1)


def list_limits(screen: Mapping[str, View]) -> list[Notice]:
    """Each time that the person is told of the limit."""
    return [one for one in screen.values() if isinstance(one, Notice) and "limit" in one.text]


def check(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    screen = ledger.read_screen()
    told = list_limits(screen)
    assert 1 <= len(told) <= 2 and all(notice.buttons for notice in told), f"{label}: {screen}"
    assert not any(isinstance(view, ReplyView) for view in screen.values()), f"{label}: {screen}"
    tools = Counter(line["name"] for line in ledger.all("tool"))
    assert tools["note"] <= 1 and set(tools) <= {"note", "add", "look"}, f"{label}: {tools}"
    calls = ledger.all("model")
    assert 4 <= len(calls) <= 5, f"{label}: three, the summary, and the one that was cut off"


@pytest.mark.timeout(120)
@some_and_every()
def test_a_kill_in_a_turn_that_reaches_its_limit(some: int) -> None:
    points = count_points(story, prepare)
    killed_everywhere(points, story, check, prepare, some=some, hit=0.8)
