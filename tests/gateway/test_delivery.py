"""What chats and views share on their way out: one budget a chat, buttons off first."""

import asyncio
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from agent_core import ambient
from gateway.delivery.holder import Cause, Holder, Key
from gateway.delivery.native_messages import FirstSends, SentHere, place
from gateway.delivery.outbox import Outbox
from gateway.delivery.pace import FEW, Pace, Paces, SignBudget
from gateway.delivery.send_gate import CROWD, MARKED_AHEAD, MAX_IN_FLIGHT, SendGate
from gateway.errors import Ambiguous, RateLimited, Rejected, Unsent
from gateway.messages import Conversation
from gateway.ports import Abilities, Adapter
from gateway.store.rows import Changes, Native, OutboxRow
from gateway.views import Activity, ApprovalCard, Notice, ReplyView, View
from tests.fakes.waiting import PATIENCE
from tests.fakes.world import ROOM, Ledger, LedgerAdapter, Points

CHAT = ("telegram", "1", "", "7")


def test_a_chat_has_one_budget_whoever_asks() -> None:
    paces = Paces()
    paces.get_pace(CHAT, 1.0).note_limit(30.0)
    again = paces.get_pace(CHAT, 1.0)
    assert again.busy() and again is paces.get_pace(CHAT, 1.0)
    assert not paces.get_pace(("telegram", "1", "", "8"), 1.0).busy()


def test_only_budgets_that_matter_are_kept() -> None:
    paces = Paces()
    paces.get_pace(CHAT, 1.0).note_limit(30.0)
    for n in range(2 * FEW):
        paces.get_pace(("telegram", "1", "", str(n + 100)), 1.0)
    assert len(paces._known) <= FEW + 1
    assert paces.get_pace(CHAT, 1.0).busy(), "the one that is limited is known still"


def test_signs_of_life_have_a_budget_that_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(ambient, "monotonic", lambda: now)
    signs = SignBudget(20.0)
    assert sum(signs.take() for _ in range(50)) == 20
    now += 0.5
    assert sum(signs.take() for _ in range(50)) == 10
    now += 3_600.0
    assert sum(signs.take() for _ in range(50)) == 20, "what is not used is not saved up"


@pytest.mark.parametrize(
    ("age", "known"), [(5.0, True), (-1.0, True), (90.0, False), (-3_600.0, False)]
)
def test_a_send_is_repeated_only_while_the_platform_surely_knows_it(
    tmp_path: Path, age: float, known: bool
) -> None:
    """Its time may be that of another replica, or of a clock that was set back."""
    adapter = LedgerAdapter(Ledger(tmp_path / "ledger"), Points(), Abilities(recalls=60.0))
    row = OutboxRow(
        turn="t",
        name="reply",
        position=0,
        version=1,
        view=Notice(text="hello"),
        at=ambient.now() - age,
        sending=0,
    )
    found = FirstSends(ROOM, cast(Adapter, adapter), SentHere(), Alone()).resume(row)
    assert (found.doubtful, found.copies) == (not known, int(not known))


@pytest.mark.parametrize("recalls", [0.0, 60.0])
async def test_what_this_process_has_sent_is_known_by_its_message(
    tmp_path: Path, recalls: float
) -> None:
    """A store that forgot the turn begins another; one that forgot its end runs it again."""
    adapter = LedgerAdapter(Ledger(tmp_path / "ledger"), Points(), Abilities())
    sent = SentHere()

    def row(turn: str, **more: object) -> OutboxRow:
        view = Notice(text="hello")
        one = OutboxRow(turn=turn, name="reply", position=0, version=1, view=view, at=0.0)
        return replace(one, **more)

    def label(one: OutboxRow) -> bool:
        return FirstSends(ROOM, cast(Adapter, adapter), sent, Alone()).label(one).doubtful

    first = FirstSends(ROOM, cast(Adapter, adapter), sent, Alone())
    assert not first.label(row("t")).doubtful
    await first.send(row("t"), 0, adapter.render(Notice(text="hello"), ROOM)[0])
    adapter.abilities = Abilities(recalls=recalls)
    assert label(row("t")) == (not recalls)
    assert label(row("another"))
    assert not label(row("another", anew=1)), "its message is gone: it is sent again on purpose"
    assert not label(row("t", natives=(Native(id="1", digest=""),)))


@pytest.mark.parametrize(
    ("failure", "perhaps"),
    [
        *((one, True) for one in (Ambiguous("cut off"), TimeoutError(), asyncio.CancelledError())),
        *((one, False) for one in (RateLimited(1.0), Unsent("no way"), Rejected("too long"))),
    ],
)
async def test_what_may_have_arrived_is_known_too(
    tmp_path: Path, failure: BaseException, perhaps: bool
) -> None:
    """The mark of such a send may be forgotten by the store, with all else."""
    sent, adapter = SentHere(), Failing(Ledger(tmp_path / "ledger"), Points(), Abilities())
    view = Notice(text="hello")
    row = OutboxRow(turn="t", name="reply", position=0, version=1, view=view, at=0.0)
    adapter.failure = failure
    sends = FirstSends(ROOM, cast(Adapter, adapter), sent, Alone())
    with pytest.raises(type(failure)):
        await sends.send(sends.label(row), 0, b"hello")
    again = FirstSends(ROOM, cast(Adapter, adapter), sent, Alone())
    assert again.label(row).doubtful == perhaps


class Failing(LedgerAdapter):
    """A platform that does not answer as it should."""

    failure: BaseException

    async def send(self, conversation: Conversation, payload: bytes, answers: str = "") -> str:
        raise self.failure


class Queue:
    """First sends before a gate, each of which lasts until it is ended here."""

    def __init__(self, gate: SendGate) -> None:
        self.under_way: dict[int, asyncio.Event] = {}
        self.begun: list[int] = []
        self._gate = gate

    async def send(self, name: int) -> None:
        ticket = await self._gate.enter()
        await self._gate.wait_turn(ticket)
        ended = self.under_way[name] = asyncio.Event()
        self.begun.append(name)
        await ended.wait()
        del self.under_way[name]
        self._gate.leave(ticket)

    async def settle(self) -> None:
        """Until nothing begins any more by itself."""
        for _ in range(20):
            await asyncio.sleep(0)


@pytest.mark.parametrize("count", [2, CROWD, CROWD + 1])
async def test_a_line_that_is_no_crowd_goes_one_by_one(count: int) -> None:
    queue = Queue(SendGate(patience=3_600.0))
    async with asyncio.TaskGroup() as group:
        for n in range(count):
            group.create_task(queue.send(n))
        for n in range(count):
            await queue.settle()
            assert list(queue.under_way) == [n], "one at a time, in order"
            queue.under_way[n].set()


async def test_a_crowd_goes_many_at_once_until_nobody_waits() -> None:
    queue, count = Queue(SendGate(patience=3_600.0)), CROWD + 2 + 3 * MAX_IN_FLIGHT
    async with asyncio.TaskGroup() as group:
        for n in range(count):
            group.create_task(queue.send(n))
        while queue.under_way or len(queue.begun) < count:
            await queue.settle()
            left = count - len(queue.begun)
            assert len(queue.under_way) <= MAX_IN_FLIGHT + 1, "the doubt of a crash has a bound"
            assert not left or len(queue.under_way) >= MAX_IN_FLIGHT, "no place is left empty"
            queue.under_way[min(queue.under_way)].set()
            await queue.settle()
        assert queue.begun == sorted(queue.begun), "in order"
        for n in range(2):
            group.create_task(queue.send(count + n))
        await queue.settle()
        assert len(queue.under_way) == 1, "the crowd is gone: one at a time again"
        for n in range(2):
            await queue.settle()
            queue.under_way[count + n].set()


async def test_who_has_waited_long_goes_along_with_others() -> None:
    queue = Queue(SendGate(patience=0.0))
    async with asyncio.TaskGroup() as group:
        for n in range(MAX_IN_FLIGHT + 9):
            group.create_task(queue.send(n))
        async with asyncio.timeout(PATIENCE):
            while len(queue.under_way) < MAX_IN_FLIGHT:
                await asyncio.sleep(0.001)
        assert len(queue.under_way) <= MAX_IN_FLIGHT + 1
        async with asyncio.timeout(PATIENCE):
            while queue.under_way or len(queue.begun) < MAX_IN_FLIGHT + 9:
                for ended in queue.under_way.values():
                    ended.set()
                await asyncio.sleep(0.001)


async def test_who_waits_goes_along_once_its_patience_has_ended() -> None:
    queue = Queue(SendGate(patience=0.05))
    async with asyncio.TaskGroup() as group:
        for n in range(3):
            group.create_task(queue.send(n))
        await queue.settle()
        assert list(queue.under_way) == [0]
        async with asyncio.timeout(PATIENCE):
            while len(queue.under_way) < 3:
                await asyncio.sleep(0.001)
            group.create_task(queue.send(3))
            await queue.settle()
            assert list(queue.under_way) == [0, 1, 2], "a later one waits as long"
            while len(queue.under_way) < 4:
                await asyncio.sleep(0.001)
        for ended in queue.under_way.values():
            ended.set()


@pytest.mark.parametrize("behind", [MARKED_AHEAD, MARKED_AHEAD + 1, 7])
async def test_who_is_cancelled_holds_up_nobody(behind: int) -> None:
    gate = SendGate(patience=3_600.0)
    first = await gate.enter()
    waiting = [asyncio.create_task(gate.enter()) for _ in range(8)]
    await asyncio.sleep(0)
    waiting[behind].cancel()
    await asyncio.wait([waiting.pop(behind)])
    gate.leave(first)
    async with asyncio.timeout(PATIENCE):
        for one in waiting:
            ticket = await one
            await gate.wait_turn(ticket)
            gate.leave(ticket)


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
    assert [name for _, name in sorted(keys, key=partial(place, outbox.rows))] == [
        "decided",
        "activity",
        "new",
    ]


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

    def preview(self, key: Key) -> OutboxRow:
        view = ReplyView(text="", state="streaming")
        return OutboxRow(turn=key[0], name=key[1], position=9, version=0, view=view, at=0.0)

    def find_origin(self, turn: str) -> str:
        return "the message"

    def may_repeat(self, turn: str) -> bool:
        return False

    def may_send(self, seconds: float) -> bool:
        return True

    async def note_closed(self, why: str) -> None: ...

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


async def test_no_answer_grows_above_what_was_said_before_it(tmp_path: Path) -> None:
    """Also while the commit of that is under way."""
    ledger, still = Ledger(tmp_path / "ledger.jsonl"), Abilities(drafts=False, edit_interval=0.0)
    adapter = cast(Adapter, LedgerAdapter(ledger, Points(), still))
    outbox = Outbox(ROOM, adapter, SendGate(), Pace(0.0), cast(Holder, Alone()))
    sender = asyncio.create_task(outbox.run())
    said = Notice(text="A link")
    row = outbox.want(OutboxRow(turn="t", name="v", position=1, version=1, view=said, at=0.0))
    outbox.grow(("t", "reply"), "It is")
    for _ in range(50):
        await asyncio.sleep(0)
    assert not ledger.all()
    outbox.stands((row,))
    async with asyncio.timeout(PATIENCE):
        while len(ledger.all()) < 2:
            await asyncio.sleep(0)
    outbox.stop()
    await sender
    assert [line["view"]["text"] for line in ledger.all()] == ["A link", "It is"]
