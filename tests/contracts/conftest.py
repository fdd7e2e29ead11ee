"""A redis-server for this folder's tests, and the store's world upon it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import redis
from redis.asyncio import Redis

from agent_core import ambient
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.sqlite import SqliteStore
from tests.contracts.redis_server import RedisServer, redis_server
from tests.contracts.store_values import DAY, START, ManualClock


class ServerClock(ManualClock):
    """A manual clock that takes the server's along: nobody can set that one, so what runs out by
    it runs out earlier. What is `ahead` is the processes' clock alone."""

    def __init__(self, url: str) -> None:
        self._client = redis.Redis.from_url(url)
        self._time = START
        super().__init__()

    @property
    def time(self) -> float:
        return self._time

    @time.setter
    def time(self, value: float) -> None:
        passed, self._time = value - self._time, value
        if passed:
            for key in self._client.scan_iter("tk:{*}", _type="hash"):
                if float(self._client.hget(key, "expires") or 0):
                    self._client.hincrbyfloat(key, "expires", -passed)

    def close(self) -> None:
        """Leave the server."""
        self._client.close()


class SqliteWorld:
    """A file."""

    store: Store
    shared = False

    def __init__(self, path: Path) -> None:
        self.clock = ManualClock()
        self._path = path

    async def restart(self) -> Store:
        await self.store.close()
        self.store = await SqliteStore.open(self._path)
        return self.store

    async def replica(self) -> Store:
        return self.store

    async def age(self, days: float) -> None:
        self.clock.time += days * DAY
        await self.store.sweep(self.clock.time)


class RedisWorld:
    """A server of its own; keys with a time to live go when the clock says so."""

    store: Store
    shared = True

    def __init__(self, server: RedisServer) -> None:
        self.clock = ServerClock(server.url)
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
    world.clock.close()
    ambient.use(ambient.SystemClock())


@pytest.fixture
async def sqlite_world(tmp_path: Path) -> AsyncIterator[SqliteWorld]:
    made = SqliteWorld(tmp_path / "store.db")
    ambient.use(made.clock)
    made.store = await SqliteStore.open(tmp_path / "store.db")
    yield made
    await made.store.close()
    ambient.use(ambient.SystemClock())


@pytest.fixture(params=["sqlite_world", "redis_world"])
def world(request: pytest.FixtureRequest) -> SqliteWorld | RedisWorld:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, SqliteWorld | RedisWorld)
    return found
