"""A kill at every point of a burst: its messages are asked about once, together or one by one."""

from pathlib import Path

import pytest

from gateway.views import ReplyView
from tests.fakes.lives import count_points, killed_everywhere
from tests.fakes.world import ROOM, Ledger, Life
from tests.sampling import some_and_every

SAID = ("hey", "can you", "look at the log")


def answers(ledger: Ledger) -> list[ReplyView]:
    views = ledger.read_screen().values()
    return [view for view in views if isinstance(view, ReplyView) and view.state == "final"]


def is_told(life: Life, text: str) -> bool:
    return any(text in view.text for view in answers(life.ledger))


def join_bursts(life: Life) -> None:
    life.prepares.append(lambda: life.equip(burst=60.0))


async def story(life: Life) -> None:
    """Each message comes while the model is asked about those before it."""
    life.agent.delays["model"] = 0.15
    for n, text in enumerate(SAID):
        asked = len(life.ledger.all("model"))
        await life.say(f"m{n}", text)
        await life.until(
            lambda a=asked, t=text: len(life.ledger.all("model")) > a or is_told(life, t)
        )
    await life.until(lambda: all(is_told(life, text) for text in SAID))
    await life.quiet()
    opened = await life.store.acquire(ROOM.id, life.owner, 30.0)
    assert (opened.inbox, opened.turns, opened.views, opened.questions) == ((), (), (), ())


def check(folder: Path, label: str) -> None:
    """What was sent in the moment of the kill may stand there twice, and says so."""
    shown = answers(Ledger(folder / "ledger.jsonl"))
    for text in SAID:
        told = [view for view in shown if text in view.text.removeprefix("ack ").split("\n")]
        assert told and sum(not view.note for view in told) <= 1, f"{label}: {text}: {shown}"
        assert len(told) <= 2, f"{label}: {text}: {shown}"


@pytest.mark.timeout(240)
@some_and_every(5)
def test_a_kill_at_every_point_of_a_burst(some: int) -> None:
    points = count_points(story, join_bursts)
    assert points["names"].count("model") == 3, points["names"]
    killed_everywhere(points, story, check, join_bursts, some=some, hit=0.6)
