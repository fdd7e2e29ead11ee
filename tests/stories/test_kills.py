"""Stories re-run with a kill at every point: before and after each commit, model call, tool,
send and edit. Each message is answered once, each effect runs at most once, each approval is
honoured, and the same native messages are edited on."""

import json
import random
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from gateway.views import ApprovalCard, Reply
from tests.fakes.lives import count_points, killed_at
from tests.fakes.world import Ledger, Life, _view

MESSAGES = {"m1": "hello", "m2": "do note look|deploy add", "m3": "bye"}
ANSWERS = {
    "m1": ["ack hello"],
    "m2": ["done note look|deploy add: "],
    "m3": ["ack bye"],
}


async def story(life: Life) -> None:
    """Three messages; the second runs tools and waits for an approval. Redelivers everything."""
    await life.say("m1", MESSAGES["m1"])
    await life.say("m2", MESSAGES["m2"])
    await life.until(lambda: _card(life) or _finals(life, "done note"))
    if _card(life):
        await life.press("p1", _card(life).buttons[0].token)
    await life.until(lambda: _finals(life, "done note"))
    await life.say("m3", MESSAGES["m3"])
    await life.until(lambda: _finals(life, "ack bye"))
    await life.quiet()
    assert await life.store.work("r1") == ()


def _card(life: Life) -> ApprovalCard | None:
    return next((card for card in life.cards() if card.state == "open"), None)


def _finals(life: Life, start: str) -> list[Reply]:
    views = life.screen().values()
    return [
        v for v in views if isinstance(v, Reply) and v.state == "final" and v.text.startswith(start)
    ]


def check(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    sends = ledger.all("send")
    screen = {}
    for line in ledger.all():
        if line["what"] in ("send", "edit"):
            screen[line["id"]] = _view(json.dumps(line["view"]).encode())
    replies = [view for view in screen.values() if isinstance(view, Reply)]
    for event, starts in ANSWERS.items():
        mine = [r for r in replies if r.text.startswith(starts[0])]
        unlabelled = [r for r in mine if not r.note]
        assert mine, f"{label}: {event} was not answered"
        assert len(unlabelled) <= 1, f"{label}: {event} answered twice: {mine}"
        assert len(mine) <= 2, f"{label}: {event}: {mine}"
    tools = Counter(line["name"] for line in ledger.all("tool"))
    assert tools["note"] <= 1 and tools["deploy"] <= 1, f"{label}: {tools}"
    final = next(r for r in replies if r.text.startswith("done note"))
    assert "deploy ok" in final.text or "Outcome unknown" in final.text, f"{label}: {final}"
    assert tools["deploy"] == 1 or "Outcome unknown" in final.text, f"{label}: {final} {tools}"
    assert len(sends) - len({line["id"] for line in sends}) == 0
    cards = [view for view in screen.values() if isinstance(view, ApprovalCard)]
    assert any(card.state == "approved" for card in cards), f"{label}: {cards}"
    doubts = len(sends) - 5  # three replies, an activity, a card
    assert doubts in (0, 1), f"{label}: {len(sends)} messages {[s['view']['kind'] for s in sends]}"
    if doubts == 0:
        assert all(card.state != "open" for card in cards), f"{label}: {cards}"
    _store_is_clean(folder, label)


def _store_is_clean(folder: Path, label: str) -> None:
    store = sqlite3.connect(folder / "store.db")
    try:
        for sql in (
            "SELECT count(*) FROM turns WHERE status IN ('running', 'parked')",
            "SELECT count(*) FROM questions WHERE status = 'open'",
            "SELECT count(*) FROM inbox WHERE state != 1",
            "SELECT count(*) FROM outbox WHERE unsent = 1",
            "SELECT count(*) FROM conversations WHERE work = 1 OR owner IS NOT NULL",
        ):
            assert store.execute(sql).fetchone()[0] == 0, f"{label}: {sql}"
        assert store.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert store.execute("SELECT count(*) FROM transcript").fetchone()[0] == 3, label
    finally:
        store.close()


@pytest.mark.timeout(240)
def test_a_kill_at_every_point_loses_and_doubles_nothing() -> None:
    points = count_points(story)
    assert points["count"] > 60, points
    killed = 0
    for k in range(1, points["count"] + 1):
        label = f"killed at {k} ({points['names'][k - 1]})"
        killed += killed_at([{k}], story, check, label)
    assert killed >= points["count"] * 0.9


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_three_kills_at_random_points_lose_nothing() -> None:
    points = count_points(story)
    dice = random.Random(7)
    for n in range(60):
        kills = [{dice.randrange(1, points["count"] + 1)} for _ in range(3)]

        def lenient(folder: Path, label: str) -> None:
            _store_is_clean(folder, label)

        killed_at(kills, story, lenient, f"run {n}: {kills}")
