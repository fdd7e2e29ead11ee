"""An outage of the store ends: all conversations that it stopped go on soon, and not at once."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from agent_core import ambient
from agent_core.ambient import SystemClock
from gateway.errors import StoreFailed
from gateway.messages import Conversation
from gateway.store.port import Store
from gateway.store.rows import AcquiredConversation
from gateway.views import ReplyView
from tests.fakes.clocks import Skipping
from tests.fakes.world import Life

ROOMS = [
    Conversation(platform="test", account="a", channel=f"room {n}", private=True) for n in range(20)
]
OUTAGE = 300.0
SOON = 16.0
"""Of the 30 s in which all flows again; a trip to a store that hangs takes some, the work too."""
STEP = 0.5


class BrokenStore:
    """A store that fails while it is `down`, and tells when which conversation was opened."""

    def __init__(self, store: Store, clock: Skipping) -> None:
        self._store, self._clock = store, clock
        self.down = False
        self.opened: dict[str, float] = {}

    def __getattr__(self, name: str) -> object:
        real = getattr(self._store, name)
        if not callable(real) or not self.down:
            return real

        def fail(*_: object, **__: object) -> object:
            broken = asyncio.get_running_loop().create_future()
            broken.set_exception(StoreFailed("nobody is there"))
            return broken

        return fail

    async def acquire(
        self, conversation: str, owner: str, ttl: float
    ) -> AcquiredConversation | None:
        if self.down:
            raise StoreFailed("nobody is there")
        self.opened.setdefault(conversation, self._clock.ahead)
        return await self._store.acquire(conversation, owner, ttl)


@pytest.fixture
def clock() -> Iterator[Skipping]:
    clock = Skipping()
    ambient.use(clock)
    yield clock
    ambient.use(SystemClock())


async def skip(clock: Skipping, seconds: float) -> None:
    """Let the time pass in which the store is tried in vain."""
    for _ in range(round(seconds / STEP)):
        clock.skip(STEP)
        for _ in range(5):
            await asyncio.sleep(0)


async def test_all_go_on_soon_after_an_outage_and_not_in_one_moment(
    tmp_path: Path, clock: Skipping
) -> None:
    one = Life(tmp_path)
    one.agent.gates["look"] = asyncio.Event()
    async with one.living(lambda: one.equip(store=BrokenStore(cast(Store, one.store), clock))):
        store = one.services.store
        assert isinstance(store, BrokenStore)
        for n, room in enumerate(ROOMS):
            await one.say(f"m{n}", "do look", where=room)
        await one.until(lambda: len(one.ledger.all("tool")) == len(ROOMS))
        store.down = True
        one.agent.gates["look"].set()
        await one.until(lambda: not one.host.sessions)
        await skip(clock, OUTAGE)
        asked, store.opened = len(one.ledger.all("model")), {}
        store.down = False
        ends = clock.ahead
        while clock.ahead < ends + SOON:
            await skip(clock, STEP)
            await one.until(lambda: answered(one) == len(store.opened))
        assert len(store.opened) == len(ROOMS)
        after = [at - ends for at in store.opened.values()]
        assert max(after) - min(after) > 5 * STEP, "each at its own time"
        assert len(one.ledger.all("model")) == asked + len(ROOMS), "no call is made again"
        assert len(one.ledger.all("tool")) == len(ROOMS)


def answered(one: Life) -> int:
    views = one.ledger.read_screen().values()
    return sum(isinstance(view, ReplyView) and view.state == "final" for view in views)
