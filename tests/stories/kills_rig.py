"""The story that is killed at every point, and what must be true of its world afterwards."""

from collections import Counter
from pathlib import Path

import pytest

from gateway.views import ApprovalCard, ReplyView
from tests.fakes.world import ROOM, Ledger, Life

ANSWERS = {
    "m1": ["ack hello"],
    "m2": ["done note look|deploy add: "],
    "m3": ["ack bye"],
}


def open_card(life: Life) -> ApprovalCard | None:
    cards = (one for one in life.cards() if isinstance(one, ApprovalCard))
    return next((one for one in cards if one.state == "open"), None)


def finals(life: Life, start: str = "") -> list[ReplyView]:
    views = life.screen().values()
    return [
        v
        for v in views
        if isinstance(v, ReplyView) and v.state == "final" and v.text.startswith(start)
    ]


def check(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    sends = ledger.all("send")
    screen = ledger.read_screen()
    replies = [view for view in screen.values() if isinstance(view, ReplyView)]
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


async def approve_and_wait(life: Life, text: str = "work", transcript: int = 1) -> None:
    """One message, whose card is approved if there is one, until all is done; told again after
    each kill."""
    await life.say("m1", text)
    await life.until(lambda: open_card(life) or finals(life))
    if (card := open_card(life)) is not None:
        await life.press("p1", card.buttons[0].token)
    await life.until(lambda: finals(life))
    await life.quiet()
    await assert_clean(life, transcript)


async def assert_clean(life: Life, transcript: int) -> None:
    """Nothing waits, runs, is open or unsent; each ended turn is in the transcript once."""
    assert await life.store.work(life.owner) == ()
    assert await life.store.next_due() is None
    opened = await life.store.acquire(ROOM.id, life.owner, 30.0)
    assert (opened.inbox, opened.turns, opened.views, opened.questions) == ((), (), (), ())
    assert not opened.crashed
    assert opened.row.end == transcript, opened.row


def on_sqlite(life: Life) -> None:
    """The default of a life."""


ON_BOTH_STORES = pytest.mark.parametrize("prepare_store", ["sqlite", "redis"], indirect=True)
