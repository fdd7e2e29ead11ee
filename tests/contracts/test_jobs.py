"""Jobs and runs in both stores."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.jobs.port import Jobs
from gateway.jobs.store_redis import RedisJobs
from gateway.jobs.store_sqlite import SqliteJobs
from gateway.store.redis import RedisStore
from gateway.store.sqlite import SqliteStore
from tests.contracts.conftest import RedisWorld
from tests.contracts.jobs_contract import JobsContract


class TestSqliteJobs(JobsContract):
    @pytest.fixture
    async def jobs(self, tmp_path: Path) -> AsyncIterator[Jobs]:
        store = await SqliteStore.open(tmp_path / "store.db")
        yield SqliteJobs(store)
        await store.close()


class TestRedisJobs(JobsContract):
    @pytest.fixture
    async def jobs(self, redis_world: RedisWorld) -> Jobs:
        assert isinstance(redis_world.store, RedisStore)
        return RedisJobs(redis_world.store)
