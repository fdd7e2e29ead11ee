"""A session that loses its lease while it waits for the store begins nothing more: no call of a
model or a tool, no send and no edit. Tried at each read and each write of a message's turn and of
one that was approved."""

import asyncio
import inspect
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agent_core.errors import LeaseLost
from gateway.errors import StoreFailed
from tests.fakes.world import ROOM, Life
from tests.sampling import some_and_every, spread

FREE = ("accept", "take_in", "renew", "give_back", "work", "sweep", "due", "next_due", "now")
"""What no session waits for while it works."""
EFFECTS = ("model", "tool", "send", "edit")

Say = Callable[[Life], Awaitable[None]]


class LateStore:
    """A store whose call number `at` of a session answers when that session has ended. None begins
    after it."""

    def __init__(self, one: Life, at: int) -> None:
        self._store, self._at, self._host = one.store, at, one.host
        self.calls: list[str] = []
        self.reached = asyncio.Event()
        self.goes_on = asyncio.Event()

    def __getattr__(self, name: str) -> object:
        real = getattr(self._store, name)
        if name in FREE or not (inspect.iscoroutinefunction(real) or name in ("submit", "release")):
            return real

        async def answer(work: Awaitable[object]) -> object:
            given = await work
            if ROOM.id in self._host.sessions:
                self.calls.append(name)
                if len(self.calls) == self._at:
                    self.reached.set()
                    await self.goes_on.wait()
            return given

        def call(*args: object, **named: object) -> object:
            if name == "acquire" and self.reached.is_set():
                raise StoreFailed("another one has it")
            work = answer(real(*args, **named))
            return work if inspect.iscoroutinefunction(real) else asyncio.ensure_future(work)

        return call


async def say_more(one: Life) -> None:
    await one.say("m2", "do look|note")


async def approve(one: Life) -> None:
    await one.press("p1", one.cards()[0].buttons[0].token)


async def play(say: Say, at: int) -> tuple[list[str], list[dict]]:
    """A turn parks; in the next life of the process somebody writes, or approves it. The calls of
    that life's session, and what was begun after it had ended at call number `at`."""
    with tempfile.TemporaryDirectory(prefix="tk-ended-") as folder:
        async with Life(Path(folder)).living() as one:
            await one.say("m0", "hello")
            await one.say("m1", "do note|deploy")
            await one.until(one.cards)
            await one.quiet()
        two = Life(Path(folder))
        async with two.living(lambda: two.equip(store=LateStore(two, at))):
            late = two.services.store
            assert isinstance(late, LateStore)
            said = asyncio.create_task(say(two))
            await two.until(lambda: late.reached.is_set() or (said.done() and _is_over(two)))
            before = len(two.ledger.all())
            for session in two.host.sessions.values():
                session.state.end(LeaseLost(), "not renewed in time")
            late.goes_on.set()
            await said
            await two.until(lambda: ROOM.id not in two.host.sessions)
            after = [line for line in two.ledger.all()[before:] if line["what"] in EFFECTS]
            return late.calls, after


def _is_over(one: Life) -> bool:
    return bool(one.ledger.all("model")[2:]) and not one.host.sessions and not one.host._starting


@pytest.mark.parametrize("say", [say_more, approve])
@some_and_every(2, "ended sessions")
async def test_nothing_begins_after_the_lease_was_lost(say: Say, some: int) -> None:
    calls, _ = await play(say, 0)
    assert {"thread", "submit"} <= set(calls)
    for at in spread(len(calls), some, say.__name__):
        found, begun = await play(say, at)
        assert begun == [], f"after {found[at - 1 :]}, call {at}"
