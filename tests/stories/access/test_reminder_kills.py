"""A reminder is sent once: a kill at every point of a story in which a question waits for long."""

import json
from collections import Counter
from pathlib import Path

import pytest

from gateway.views import ApprovalCard
from tests.fakes.lives import count_points, killed_at, killed_everywhere
from tests.fakes.world import Ledger, Life, _view
from tests.sampling import some_and_every
from tests.stories.kills_rig import assert_clean

sends: Counter[int] = Counter()


def reminders(life: Life) -> list[str]:
    return [line["id"] for line in life.ledger.all("send") if is_reminder(line)]


def is_reminder(line: dict) -> bool:
    return line["view"].get("text", "").startswith("Still waiting")


async def story(life: Life) -> None:
    """A card, a reminder of it, a press."""
    life.equip(question_reminder=0.03)
    await life.say("m1", "do deploy")
    await life.until(lambda: card(life) is not None)
    await life.until(lambda: reminders(life))
    await life.quiet()
    found = card(life)
    assert found is not None
    if found.state == "open":
        await life.press("p1", found.buttons[0].token)
    await life.until(lambda: any("done deploy" in text(line) for line in life.ledger.all()))
    await life.quiet()
    await assert_clean(life, 1)


def text(line: dict) -> str:
    return str(line.get("view", {}).get("text", ""))


def card(life: Life) -> ApprovalCard | None:
    cards = [view for view in life.cards() if isinstance(view, ApprovalCard)]
    return cards[-1] if cards else None


def check(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    found = [line for line in ledger.all("send") if is_reminder(line)]
    assert 1 <= len(found) <= 2, f"{label}: {len(found)} reminders"
    sends[len(found)] += 1
    tools = Counter(line["name"] for line in ledger.all("tool"))
    assert tools["deploy"] <= 1, label
    screen = [_view(json.dumps(line["view"]).encode()) for line in ledger.all("edit")]
    assert any(isinstance(v, ApprovalCard) and v.state == "approved" for v in screen), label


@pytest.mark.timeout(240)
@some_and_every(12)
def test_a_kill_at_every_point_reminds_once(some: int) -> None:
    sends.clear()
    points = count_points(story)
    names = points["names"]
    assert names.count("commit") > 5, names
    killed_everywhere(points, story, check, some=some)
    # between the platform's answer and the commit of it nothing can tell whether it stands there
    assert sends[2] <= 3, sends


def test_the_reminder_and_its_mark_are_one_commit(tmp_path: Path) -> None:
    """Killed right before its commit, between that and the send: it comes, and once."""
    points = count_points(story)
    *_, reminder, _answer = [n for n, name in enumerate(points["names"], 1) if name == "send"]
    assert {"commit", "committed"} <= set(points["names"][reminder - 5 : reminder - 1])
    for k in range(reminder - 4, reminder + 1):
        sends.clear()
        killed_at([{k}], story, check, f"kill at {k}")
        assert sends == {1: 1}, (k, points["names"][k - 1])
