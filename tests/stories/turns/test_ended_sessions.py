"""A session that loses its lease while it waits for the store begins nothing more: no call of a
model or a tool, no send and no edit. Tried at each read and each write of a message's turn and of
one that was approved. And what it has asked for is not asked for again, where a commit that was
under way then fails."""

import asyncio
import inspect
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest

from agent_core.errors import LeaseLost
from gateway.errors import StoreFailed
from gateway.store.port import Store
from gateway.store.rows import Lease
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


class LosingStore:
    """A store that keeps nothing of what is written from commit number `at` on until it `fails`."""

    def __init__(self, one: Life, at: int) -> None:
        self._store, self._at = cast(Store, one.store), at
        self.commits = 0
        self.reached = asyncio.Event()
        self.over = asyncio.Event()
        self._lost: list[asyncio.Future[object]] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def submit(self, *args: object) -> object:
        self.commits += not self.over.is_set()
        return self._write(self._store.submit, *args)

    def release(self, *args: object) -> object:
        return self._write(self._store.release, *args)

    def _write(self, write: Callable[..., object], *args: object) -> object:
        if self.over.is_set() or not 0 < self._at <= self.commits:
            return write(*args)
        self.reached.set()
        self._lost.append(asyncio.get_running_loop().create_future())
        return self._lost[-1]

    def fail(self) -> None:
        """It fails now what it was asked to keep, and works again."""
        self.over.set()
        for future in self._lost:
            if not future.done():  # a waiter that was cancelled must not cancel it
                future.set_exception(StoreFailed("the disk did not answer"))

    async def give_back(self, lease: Lease) -> None:
        await self.over.wait()
        await self._store.give_back(lease)


async def say_more(one: Life) -> None:
    await one.say("m2", "do look|note")


async def approve(one: Life) -> None:
    await one.press("p1", one.cards()[0].buttons[0].token)


async def park(folder: str) -> Life:
    """A turn waits for an approval; the next life of the process."""
    async with Life(Path(folder)).living() as one:
        await one.say("m0", "hello")
        await one.say("m1", "do note|deploy")
        await one.until(one.cards)
        await one.quiet()
    return Life(Path(folder))


async def play(say: Say, at: int) -> tuple[list[str], list[dict]]:
    """Somebody writes where a turn waits, or approves it. The calls of the session, and what was
    begun after it had ended at call number `at`."""
    with tempfile.TemporaryDirectory(prefix="tk-ended-") as folder:
        two = await park(folder)
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


async def lose(say: Say, at: int) -> tuple[int, int]:
    """The same, where the session ends while commit number `at` is under way, which then fails.
    How many commits it made until then, and how often a model was asked for no reason."""
    with tempfile.TemporaryDirectory(prefix="tk-ended-") as folder:
        two = await park(folder)
        async with two.living(lambda: two.equip(store=LosingStore(two, at))):
            store = two.services.store
            assert isinstance(store, LosingStore)
            known = len(two.ledger.all("model"))
            await say(two)
            await two.until(lambda: store.reached.is_set() or _is_over(two))
            names = two.points.names
            cut_off = names.count("model") - names.count("model done")
            for session in two.host.sessions.values():
                session.state.end(LeaseLost(), "not renewed in time")
            for _ in range(20):  # who waits is cancelled
                await asyncio.sleep(0)
            store.fail()
            await two.until(lambda: "note ok" in str(list(two.screen().values())) and two.cards())
            await two.quiet()
            asked = len(two.ledger.all("model")) - known - cut_off
            return store.commits, asked - (3 if say is say_more else 1)


@pytest.mark.parametrize("say", [say_more, approve])
@some_and_every(1, "lost commits")
async def test_no_model_is_asked_again_for_what_was_not_written(say: Say, some: int) -> None:
    commits, _ = await lose(say, 0)
    for at in spread(commits, some, "lost", say.__name__):
        assert (await lose(say, at))[1] == 0, f"commit {at}"
