"""First sends before the gate: chats in turn, and none waits for chats where nothing arrives."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.delivery import send_gate
from gateway.delivery.send_gate import KEPT_FOR_QUICK, MAX_IN_FLIGHT, SendGate, Ticket
from tests.fakes.waiting import PATIENCE
from tests.sampling import examples

FOR_EVER = 3_600.0
STEPS = ("ask", "ask", "end", "give_up", "slow")


class Senders:
    """Sends of many chats, each of which lasts until it is ended here."""

    def __init__(self, gate: SendGate, group: asyncio.TaskGroup) -> None:
        self.gate, self._group = gate, group
        self.under_way: list[Ticket] = []
        self.begun: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []

    def add(self, chat: str) -> asyncio.Task[None]:
        self._tasks.append(self._group.create_task(self._send(chat)))
        return self._tasks[-1]

    async def _send(self, chat: str) -> None:
        ticket = await self.gate.enter(chat, left=chat.startswith("left"))
        try:
            await self.gate.wait_turn(ticket)
        except asyncio.CancelledError:
            self.gate.leave(ticket)
            raise
        self.begun.append(chat)
        self.under_way.append(ticket)

    def end(self, ticket: Ticket) -> None:
        self.under_way.remove(ticket)
        self.gate.leave(ticket)

    async def send(self, chat: str) -> None:
        """One send that is answered at once."""
        await self.add(chat)
        self.end(next(one for one in self.under_way if one.chat == chat))

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()


@asynccontextmanager
async def sending(gate: SendGate) -> AsyncIterator[Senders]:
    async with asyncio.TaskGroup() as group:
        senders = Senders(gate, group)
        yield senders
        senders.cancel()


async def settle() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


@pytest.mark.parametrize("greedy", [5, 64, 65, 1000])
async def test_a_chat_waits_for_few_of_all_that_another_has_to_send(greedy: int) -> None:
    async with sending(SendGate(FOR_EVER)) as senders:
        for _ in range(greedy):
            senders.add("greedy")
        await settle()
        senders.add("modest")
        await settle()
        while "modest" not in senders.begun:
            senders.end(senders.under_way[0])
            await settle()
        assert len(senders.begun) <= 2 * MAX_IN_FLIGHT + 2


@pytest.mark.parametrize("hanging", [3, 40, 500])
@pytest.mark.parametrize("known", [True, False])
async def test_a_chat_that_is_answered_waits_for_none_that_hangs(
    hanging: int, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`known`: those that hang did so before."""
    async with asyncio.timeout(PATIENCE), sending(SendGate(0.02)) as senders:
        await senders.send("ours")
        if known:
            monkeypatch.setattr(send_gate, "SLOW", -1.0)
            for n in range(hanging):
                await senders.send(f"hangs{n}")
        monkeypatch.setattr(send_gate, "SLOW", 0.05)
        for n in range(hanging):
            senders.add(f"hangs{n}")
        await settle()
        for _ in range(5):
            await senders.send("ours")
        if known:
            await senders.send("a newcomer")
        assert len(senders.under_way) <= min(hanging, MAX_IN_FLIGHT)


@pytest.mark.parametrize("hanging", [3, 40, 500])
async def test_after_a_restart_nobody_waits_for_all_that_was_left_unsent(
    hanging: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send_gate, "SLOW", 0.05)
    async with asyncio.timeout(PATIENCE), sending(SendGate(0.02)) as senders:
        for n in range(hanging):
            senders.add(f"left{n}")
        await settle()
        for n in range(3):
            await senders.send(f"new{n}")
        assert len(senders.under_way) <= min(hanging, send_gate.MAX_SLOW)


async def test_the_next_sends_when_the_one_before_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send_gate, "SLOW", 0.05)
    async with asyncio.timeout(PATIENCE), sending(SendGate(FOR_EVER)) as senders:
        for n in range(4):
            senders.add(f"hangs{n}")
        await senders.send("ours")
        assert len(senders.begun) == 5


@pytest.mark.parametrize("kinds", [("chat", "left"), ("left", "chat"), ("chat", "chat")])
async def test_no_kind_of_chat_waits_for_all_of_another(kinds: tuple[str, str]) -> None:
    greedy, modest = kinds
    async with sending(SendGate(FOR_EVER)) as senders:
        for n in range(500):
            senders.add(f"{greedy}{n}")
        await settle()
        senders.add(f"{modest} modest")
        await settle()
        while f"{modest} modest" not in senders.begun and len(senders.begun) < 500:
            senders.end(senders.under_way[0])
            await settle()
        assert (greedy == modest) == (len(senders.begun) > 3 * MAX_IN_FLIGHT)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 99))))
async def test_nobody_is_forgotten_and_the_doubt_has_a_bound(steps: list[tuple[str, int]]) -> None:
    async with asyncio.timeout(PATIENCE), sending(SendGate(FOR_EVER)) as senders:
        asked: list[asyncio.Task[None]] = []
        for what, n in steps:
            if what == "ask":
                asked += [
                    senders.add(f"{'left' if n % 5 == 4 else 'chat'}{n % 7}") for _ in range(n % 40)
                ]
            elif what == "give_up" and asked:
                asked.pop(n % len(asked)).cancel()
            elif senders.under_way:
                ticket = senders.under_way[n % len(senders.under_way)]
                if what == "slow":
                    ticket.began -= 2 * send_gate.SLOW
                senders.end(ticket)
            await settle()
            asked = [task for task in asked if not task.done()]
            assert len(senders.under_way) <= MAX_IN_FLIGHT + KEPT_FOR_QUICK
            assert senders.under_way or not asked, "somebody waits, and nobody sends"
        while senders.under_way:
            senders.end(senders.under_way[0])
            await settle()
        assert all(task.done() for task in asked), "nobody waits for ever"
