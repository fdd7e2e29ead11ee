"""What the Telegram adapter's tests share: a store that may fail, and a running adapter."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from adapters.telegram.adapter import TelegramAdapter
from gateway.errors import StoreFailed
from gateway.messages import Inbound, MessageReceived
from tests.fakes.waiting import PATIENCE


class Store:
    """An Accept that keeps what it is given, or fails."""

    def __init__(self) -> None:
        self.kept: list[Inbound] = []
        self.failures = 0
        self.grown = asyncio.Event()

    async def accept(self, batch: Sequence[Inbound]) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreFailed("it is away")
        self.kept += batch
        self.grown.set()

    async def holds(self, count: int) -> list[Inbound]:
        async with asyncio.timeout(PATIENCE):
            while len(self.kept) < count:
                self.grown.clear()
                await self.grown.wait()
        return self.kept

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.kept if isinstance(one, MessageReceived)]


@asynccontextmanager
async def running(adapter: TelegramAdapter, store: Store) -> AsyncIterator[Store]:
    task = asyncio.create_task(adapter.run(store.accept))
    try:
        yield store
    finally:
        task.cancel()
        await asyncio.wait([task])
