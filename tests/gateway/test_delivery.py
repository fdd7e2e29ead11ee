"""What chats and views share on their way out: one budget a chat, buttons off first."""

import asyncio
from pathlib import Path
from typing import cast

import pytest

from agent_core import ambient
from gateway.delivery.holder import Cause, Holder
from gateway.delivery.outbox import Outbox
from gateway.delivery.pace import FEW, Pace, Paces, SendGate, SignBudget
from gateway.messages import Conversation
from gateway.ports import Abilities, Adapter
from gateway.store.rows import Changes, Native, OutboxRow
from gateway.views import Activity, ApprovalCard, Notice, View
from tests.fakes.waiting import PATIENCE
from tests.fakes.world import ROOM, Ledger, LedgerAdapter, Points

CHAT = ("telegram", "1", "", "7")


def test_a_chat_has_one_budget_whoever_asks() -> None:
    paces = Paces()
    paces.of(CHAT, 1.0).note_limit(30.0)
    again = paces.of(CHAT, 1.0)
    assert again.busy() and again is paces.of(CHAT, 1.0)
    assert not paces.of(("telegram", "1", "", "8"), 1.0).busy()


def test_only_budgets_that_matter_are_kept() -> None:
    paces = Paces()
    paces.of(CHAT, 1.0).note_limit(30.0)
    for n in range(2 * FEW):
        paces.of(("telegram", "1", "", str(n + 100)), 1.0)
    assert len(paces._known) <= FEW + 1
    assert paces.of(CHAT, 1.0).busy(), "the one that is limited is known still"


def test_signs_of_life_have_a_budget_that_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(ambient, "monotonic", lambda: now)
    signs = SignBudget(20.0)
    assert sum(signs.take() for _ in range(50)) == 20
    now += 0.5
    assert sum(signs.take() for _ in range(50)) == 10
    now += 3_600.0
    assert sum(signs.take() for _ in range(50)) == 20, "what is not used is not saved up"


async def test_a_decided_card_is_edited_before_the_activity_and_a_new_one_is_not() -> None:
    where = Conversation(platform="telegram", account="1", channel="7", private=True)
    nobody, nowhere = cast(Holder, None), cast(Adapter, None)
    outbox = Outbox(where, nowhere, SendGate(), Pace(1.0), nobody)

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


class Alone:
    """The holder of an outbox without a session: everything may be sent, all marks stand."""

    language = "en"

    def __init__(self) -> None:
        self.kept: list[Changes] = []

    def keep(self, changes: Changes) -> "asyncio.Future[None]":
        self.kept.append(changes)
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def may_send(self, seconds: float) -> bool:
        return True

    def note_delivery(self) -> None: ...

    def note_limit(self, retry_after: float) -> None: ...

    def count(self, name: str) -> None: ...

    def set_aside(self, row: OutboxRow, cause: Cause, why: str) -> None: ...


async def test_a_turn_that_parked_and_goes_on_edits_what_it_has_sent(tmp_path: Path) -> None:
    """Its rows are dropped when it parks and read again when it goes on, in the same session."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    adapter = LedgerAdapter(ledger, Points(), Abilities(edit_interval=0.0))
    holder = Alone()
    outbox = Outbox(ROOM, cast(Adapter, adapter), SendGate(), Pace(0.0), cast(Holder, holder))
    sender = asyncio.create_task(outbox.run())

    async def shows(text: str, version: int) -> OutboxRow:
        view = Notice(text=text)
        row = OutboxRow(turn="t", name="v", position=1, version=version, view=view, at=0.0)
        row = outbox.want(row)
        outbox.stands((row,))
        async with asyncio.timeout(PATIENCE):
            while outbox.remaining:
                await asyncio.sleep(0)
        outbox.take_dirty()
        return outbox.rows.get(("t", "v"), row)

    kept = await shows("one", 1)
    outbox.forget("t")
    assert not outbox.rows, "nothing is held for a turn that waits"
    outbox.load((kept,))
    for n, text in enumerate(("two", "three", "four"), 2):
        await shows(text, n)
    outbox.stop()
    await sender
    assert [(line["what"], line["view"]["text"]) for line in ledger.all()] == [
        ("send", "one"), ("edit", "two"), ("edit", "three"), ("edit", "four"),
    ]  # fmt: skip
