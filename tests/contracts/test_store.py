"""Both stores pass one contract; what only Redis has to show is in `test_store_redis`."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_core import ambient
from gateway.store.sqlite import SqliteStore
from tests.contracts.budgets_contract import BudgetsContract
from tests.contracts.conftest import RedisWorld, SqliteWorld
from tests.contracts.store_contract import CommitContract, InboxContract, LeaseContract
from tests.contracts.store_reads_contract import (
    DirectoryContract,
    LastingContract,
    QuestionContract,
    ReadContract,
)
from tests.contracts.store_values import place

C1 = place().id


class _Sqlite:
    @pytest.fixture
    async def world(self, tmp_path: Path) -> AsyncIterator[SqliteWorld]:
        world = SqliteWorld(tmp_path / "store.db")
        ambient.use(world.clock)
        world.store = await SqliteStore.open(tmp_path / "store.db")
        yield world
        await world.store.close()
        ambient.use(ambient.SystemClock())


class _Redis:
    @pytest.fixture
    def world(self, redis_world: RedisWorld) -> RedisWorld:
        return redis_world


class TestSqliteInbox(_Sqlite, InboxContract): ...


class TestSqliteLeases(_Sqlite, LeaseContract): ...


class TestSqliteCommits(_Sqlite, CommitContract): ...


class TestSqliteReads(_Sqlite, ReadContract, QuestionContract, DirectoryContract): ...


class TestSqliteLasting(_Sqlite, LastingContract): ...


class TestSqliteBudgets(_Sqlite, BudgetsContract): ...


class TestRedisBudgets(_Redis, BudgetsContract): ...


class TestRedisInbox(_Redis, InboxContract): ...


class TestRedisLeases(_Redis, LeaseContract): ...


class TestRedisCommits(_Redis, CommitContract): ...


class TestRedisReads(_Redis, ReadContract, QuestionContract, DirectoryContract): ...


class TestRedisLasting(_Redis, LastingContract): ...
