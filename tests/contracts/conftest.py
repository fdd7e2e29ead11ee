"""A redis-server for this folder's tests, and the store's world upon it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest
from redis.asyncio import Redis

from agent_core import ambient
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from tests.contracts.redis_server import RedisServer, redis_server
from tests.contracts.store_values import DAY, ManualClock


class RedisWorld:
    """A server of its own; keys with a time to live go when the clock says so."""

    store: Store

    def __init__(self, server: RedisServer) -> None:
        self.clock = ManualClock()
        self.server = server
        self.stack = AsyncExitStack()
        self._replica: Store | None = None

    async def restart(self) -> Store:
        await self.store.close()
        self.store = await RedisStore.open(self.server.url)
        return self.store

    async def replica(self) -> Store:
        if self._replica is None:
            self._replica = await RedisStore.open(self.server.url)
            self.stack.push_async_callback(self._replica.close)
        return self._replica

    async def age(self, days: float) -> None:
        self.clock.time += days * DAY
        client = await self.stack.enter_async_context(Redis.from_url(self.server.url))
        async for key in client.scan_iter():
            left = await client.ttl(key)
            if 0 <= left <= days * DAY:
                await client.delete(key)
            elif left > 0:
                await client.expire(key, int(left - days * DAY))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    running = redis_server(tmp_path_factory.mktemp("redis"))
    yield running
    running.end()


@pytest.fixture
async def redis_world(server: RedisServer) -> AsyncIterator[RedisWorld]:
    world = RedisWorld(server)
    ambient.use(world.clock)
    async with Redis.from_url(server.url) as client:
        await client.flushall()
    world.store = await RedisStore.open(server.url)
    async with world.stack:
        yield world
        await world.store.close()
    ambient.use(ambient.SystemClock())
