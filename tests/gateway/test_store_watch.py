"""Who failed because of the store goes on when it works again, and not after a long pause."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager

import pytest

from gateway.errors import StoreFailed
from gateway.services import store_watch
from gateway.services.store_watch import PROBE, StoreWatch

LONG = 3_600.0


class Disk:
    """A store that fails while it is full."""

    def __init__(self, *, full: bool) -> None:
        self.full, self.writes = full, 0
        self.kept: dict[str, bytes | None] = {}
        self.refused = asyncio.Event()

    async def put(self, key: str, body: bytes | None) -> None:
        self.writes += 1
        if self.full:
            self.refused.set()
            raise StoreFailed("disk full")
        self.kept[key] = body


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_watch, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(store_watch, "PROBE_EVERY", 0.02)


@asynccontextmanager
async def watch(disk: Disk):
    async with asyncio.TaskGroup() as group:

        def spawn(work: Callable[[], Coroutine[object, object, None]]) -> None:
            group.create_task(work())

        yield StoreWatch(disk.put, spawn), group


async def test_all_who_wait_go_on_when_it_works_again() -> None:
    disk = Disk(full=True)
    async with watch(disk) as (store, group):
        pauses = [group.create_task(store.pause(LONG)) for _ in range(100)]
        await disk.refused.wait()
        assert not any(one.done() for one in pauses)
        disk.full = False
        assert await asyncio.gather(*pauses) == [True] * 100
        assert disk.writes < 50, "one probe for all of them"
        assert disk.kept == {PROBE: None}, "nothing of it is left"


async def test_one_whose_try_ended_a_moment_late_does_not_wait_long() -> None:
    disk = Disk(full=True)
    async with watch(disk) as (store, group):
        first = group.create_task(store.pause(LONG))
        await disk.refused.wait()
        disk.full = False
        assert await first
        assert not await store.pause(LONG), "nothing fails any more: it is a short pause"


async def test_a_store_that_never_failed_shortens_no_pause() -> None:
    disk = Disk(full=False)
    async with watch(disk) as (store, group):
        pause = group.create_task(store.pause(LONG))
        while PROBE not in disk.kept or disk.kept[PROBE] is not None:
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not pause.done()
        store.release()
        assert await pause, "the process ends: nobody waits"


async def test_another_outage_is_waited_for_too() -> None:
    disk = Disk(full=False)
    async with watch(disk) as (store, group):
        for _ in range(3):
            disk.full = True
            disk.refused.clear()
            again: Awaitable[bool] = group.create_task(store.pause(LONG))
            await disk.refused.wait()
            disk.full = False
            await again
