"""A turn whose model calls are used up, killed at every third point: it sums up once, and no call
of the model that is on record is made again. Its button goes on from there, once."""

from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_core.orchestration.brief import Brief
from gateway.messages import Conversation
from gateway.store.rows import ConversationSettings
from gateway.texts import say
from gateway.views import Notice, ReplyView
from tests.fakes.lives import count_points, killed_everywhere
from tests.fakes.world import Ledger, Life, ScriptedAgent
from tests.sampling import some_and_every
from tests.stories.kills_rig import assert_clean, finals


class ShortAgent(ScriptedAgent):
    """May call its model three times a turn."""

    def brief(self, conversation: Conversation, settings: ConversationSettings, text: str) -> Brief:
        return replace(super().brief(conversation, settings, text), max_turns=3)


def prepare(life: Life) -> None:
    life.agent = ShortAgent(life.ledger, life.points, life.folder)


async def story(life: Life) -> None:
    await life.say("m1", "do note|add|look|look|look")
    await life.until(lambda: finals(life, ""))
    await life.quiet()
    await assert_clean(life, 1)


def check(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    screen = ledger.read_screen()
    final = [v for v in screen.values() if isinstance(v, ReplyView)]
    told = [v for v in screen.values() if isinstance(v, Notice) and "limit" in v.text]
    assert final and told and all(notice.buttons for notice in told), f"{label}: {screen}"
    assert len(final) <= 2, f"{label}: {final}"
    tools = Counter(line["name"] for line in ledger.all("tool"))
    assert tools["note"] <= 1 and set(tools) <= {"note", "add", "look"}, f"{label}: {tools}"
    calls = ledger.all("model")
    assert 4 <= len(calls) <= 5, f"{label}: three, the summary, and the one that was cut off"


@pytest.mark.timeout(120)
@some_and_every()
def test_a_kill_in_a_turn_that_reaches_its_limit(some: int) -> None:
    points = count_points(story, prepare)
    killed_everywhere(points, story, check, prepare, some=some, hit=0.8)


def goes_on(life: Life) -> list[ReplyView]:
    return finals(life, f"ack {say('turn_go_on')}")


async def story_of_the_button(life: Life) -> None:
    """Continue is pressed twice; told again after a kill, it may be gone already."""
    await life.say("m1", "do note|add|look|look|look")
    await life.until(lambda: finals(life, ""))
    await life.quiet()
    told = list_limits(life.ledger)[-1]  # a copy that a kill left stands before it
    if told.buttons:
        for event in ("p1", "p2"):
            await life.press(event, told.buttons[0].token)
    await life.until(lambda: goes_on(life))
    await life.quiet()
    await assert_clean(life, 2)


def list_limits(ledger: Ledger) -> list[Notice]:
    screen = ledger.read_screen().values()
    return [view for view in screen if isinstance(view, Notice) and "limit" in view.text]


def check_the_button(folder: Path, label: str) -> None:
    """What was sent in the moment of the kill may stand there twice, and says so."""
    ledger = Ledger(folder / "ledger.jsonl")
    replies = [v for v in ledger.read_screen().values() if isinstance(v, ReplyView)]
    later = [view for view in replies if say("turn_go_on") in view.text]
    assert 1 <= len(later) <= 2 and sum(not one.note for one in later) <= 1, f"{label}: {later}"
    tools = Counter(line["name"] for line in ledger.all("tool"))
    assert tools["note"] <= 1, f"{label}: {tools}"
    assert len(ledger.all("model")) <= 6, f"{label}: of each turn, and the one that was cut off"


@pytest.mark.timeout(240)
@some_and_every(2)
def test_a_kill_in_a_turn_that_is_continued_by_its_button(some: int) -> None:
    points = count_points(story_of_the_button, prepare)
    killed_everywhere(points, story_of_the_button, check_the_button, prepare, some=some, hit=0.8)
