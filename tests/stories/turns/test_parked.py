"""Turns that wait for a person give the lane back, and there is an end to how many."""

from pathlib import Path

from gateway.views import ApprovalCard, Notice
from tests.fakes.world import Life


async def test_the_oldest_of_too_many_waiting_turns_ends_and_says_so(tmp_path: Path) -> None:
    life = Life(tmp_path)
    async with life.living():
        life.equip(most_parked=2)
        for n in range(3):
            await life.say(f"m{n}", "do deploy")
            await life.until(lambda n=n: len(life.cards()) == n + 1)
            await life.quiet()
        states = [card.state for card in life.cards() if isinstance(card, ApprovalCard)]
        assert sorted(states) == ["cancelled", "open", "open"] and states[0] == "cancelled"
        notices = [v.text for v in life.screen().values() if isinstance(v, Notice)]
        assert any("more than 2 requests are waiting" in text for text in notices), notices
        await life.press("p", life.cards()[2].buttons[0].token)
        await life.until(lambda: life.ledger.all("tool"))
        await life.quiet()
        assert [line["name"] for line in life.ledger.all("tool")] == ["deploy"]
