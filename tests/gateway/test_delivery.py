"""What chats and views share on their way out: one budget a chat, buttons off first."""

from typing import cast

from gateway.delivery.outbox import Holder, Outbox
from gateway.delivery.pace import FEW, Gate, Pace, Paces
from gateway.messages import Conversation
from gateway.ports import Adapter
from gateway.store.rows import Native, OutboxRow
from gateway.views import Activity, ApprovalCard, View

CHAT = ("telegram", "1", "", "7")


def test_a_chat_has_one_budget_whoever_asks() -> None:
    paces = Paces()
    paces.of(CHAT, 1.0).limited(30.0)
    again = paces.of(CHAT, 1.0)
    assert again.busy() and again is paces.of(CHAT, 1.0)
    assert not paces.of(("telegram", "1", "", "8"), 1.0).busy()


def test_only_budgets_that_matter_are_kept() -> None:
    paces = Paces()
    paces.of(CHAT, 1.0).limited(30.0)
    for n in range(2 * FEW):
        paces.of(("telegram", "1", "", str(n + 100)), 1.0)
    assert len(paces._known) <= FEW + 1
    assert paces.of(CHAT, 1.0).busy(), "the one that is limited is known still"


async def test_a_decided_card_is_edited_before_the_activity_and_a_new_one_is_not() -> None:
    where = Conversation(platform="telegram", account="1", channel="7", private=True)
    nobody, nowhere = cast(Holder, None), cast(Adapter, None)
    outbox = Outbox(where, nowhere, Gate(), Pace(1.0), nobody)

    def row(name: str, position: int, view: View, *natives: str) -> tuple[str, str]:
        there = tuple(Native(id=one, digest="") for one in natives)
        outbox.rows["t", name] = OutboxRow(
            turn="t", name=name, position=position, version=2, view=view, at=0.0, natives=there
        )
        return "t", name

    card = ApprovalCard(question="q", asker="Ann", proposals=())
    keys = [
        row("activity", 1, Activity(lines=()), "11"),
        row("decided", 2, card, "12"),
        row("new", 3, card),
    ]
    assert [name for _, name in sorted(keys, key=outbox._place)] == ["decided", "activity", "new"]
