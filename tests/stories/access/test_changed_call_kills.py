"""A call whose file changed since it was approved gets a new card in the same round, and what that one
shows runs once: killed at every point."""

from pathlib import Path

import pytest

from gateway.views import ApprovalCard
from tests.fakes.lives import Prepare, count_points, killed_everywhere
from tests.fakes.world import Ledger, Life
from tests.sampling import some_and_every
from tests.stories.kills_rig import ON_BOTH_STORES, assert_clean, finals


def newest(life: Life) -> ApprovalCard | None:
    """The newest card, if it is open: an older one that was sent twice may look open for ever."""
    cards = list(life.cards())
    return cards[-1] if cards and cards[-1].state == "open" else None


async def story(life: Life) -> None:
    """A card, the file changes, a press, a card, a press."""
    script = life.folder / "script"
    await life.say("m1", "do ship")
    await life.until(lambda: newest(life) or finals(life, "done ship"))
    if not script.exists():
        script.write_text("another")
    while not finals(life, "done ship"):
        await life.until(lambda: newest(life) or finals(life, "done ship"))
        if (card := newest(life)) is None:
            break
        token = card.buttons[0].token
        await life.press(f"p-{token}", token)
        await life.until(
            lambda known=token: (
                finals(life, "done ship") or token_of(newest(life)) not in ("", known)
            )
        )
    await life.quiet()
    await assert_clean(life, 1)


def token_of(card: ApprovalCard | None) -> str:
    return card.buttons[0].token if card is not None else ""


def check(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    ran = [line for line in ledger.all("tool") if line["name"] == "ship"]
    assert len(ran) <= 1, f"{label}: {ran}"
    shown = {line["id"]: line["view"] for line in ledger.all() if line["what"] in ("send", "edit")}
    cards = [view for view in shown.values() if view["kind"] == "approval"]
    assert len(cards) >= 2, f"{label}: {cards}"
    assert "changed since it was approved" in cards[-1]["proposals"][0]["detail"], label
    text = [v["text"] for v in shown.values() if str(v.get("text", "")).startswith("done ship")][-1]
    assert "ship ok" in text or "Outcome unknown" in text, f"{label}: {text}"


@pytest.mark.timeout(240)
@some_and_every()
@ON_BOTH_STORES
def test_a_kill_at_every_point_runs_what_was_shown_once(prepare_store: Prepare, some: int) -> None:
    points = count_points(story, prepare_store)
    assert points["count"] > 20, points
    killed_everywhere(points, story, check, prepare_store, some=some)
