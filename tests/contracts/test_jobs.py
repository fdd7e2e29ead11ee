"""Jobs and runs in both stores."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.errors import Unreadable
from gateway.jobs_port import JobStore
from gateway.store.jobs.redis_jobs import ROOT, RedisJobs
from gateway.store.jobs.sqlite_jobs import SqliteJobs
from gateway.store.redis import RedisStore
from gateway.store.sqlite import SqliteStore
from tests.contracts.conftest import RedisWorld
from tests.contracts.jobs_contract import JobsContract, job, run


class TestSqliteJobs(JobsContract):
    @pytest.fixture
    async def jobs(self, tmp_path: Path) -> AsyncIterator[JobStore]:
        store = await SqliteStore.open(tmp_path / "store.db")
        yield SqliteJobs(store)
        await store.close()


class TestRedisJobs(JobsContract):
    @pytest.fixture
    async def jobs(self, redis_world: RedisWorld) -> JobStore:
        assert isinstance(redis_world.store, RedisStore)
        return RedisJobs(redis_world.store)


async def _damage(jobs: JobStore) -> None:
    """The rows of the job j1 and of its run s1, as this version cannot read them."""
    if isinstance(jobs, SqliteJobs):
        await jobs._store.write(lambda c: c.execute("UPDATE jobs SET body = '{' WHERE id = 'j1'"))
        await jobs._store.write(lambda c: c.execute("UPDATE runs SET body = '{'"))
        return
    assert isinstance(jobs, RedisJobs)
    await jobs._store.call(("HSET", f"{ROOT}:job", "j1", "{"), ("HSET", f"{ROOT}:r:j1", "s1", "{"))


class DamageContract:
    """One row that cannot be read stops only itself."""

    async def test_the_others_are_due(self, jobs: JobStore) -> None:
        other = job("j2", made=2.0)
        open_run = run(state="retrying", wake=100.0)
        assert await jobs.commit(None, job(), (open_run,))
        assert await jobs.commit(None, other, ())
        await _damage(jobs)
        assert await jobs.list_jobs() == (other,)
        assert await jobs.list_unfinished() == ()
        due = await jobs.due(200.0, 10)
        assert (due.jobs, due.runs) == ((other,), ())
        store = jobs._store  # type: ignore[attr-defined]
        letters = await store.letters(9)
        assert {letter.kind for letter in letters} == {"job", "run"}
        assert (await jobs.due(200.0, 10)).jobs == (other,)
        assert len(await store.letters(9)) == 2, "set aside once"
        for letter in letters:
            assert await store.resubmit(letter.id) == "jobs"
        await jobs.due(200.0 + 10**10, 10)
        assert len(await store.letters(9)) == 2, "they are as they were"
        assert await store.drop((await store.letters(9))[0].id)

    @pytest.mark.parametrize("name", ["get", "run"])
    async def test_asked_for_by_its_name_it_is_unreadable(self, jobs: JobStore, name: str) -> None:
        assert await jobs.commit(None, job(), (run(),))
        await _damage(jobs)
        with pytest.raises(Unreadable):
            await (jobs.get("j1") if name == "get" else jobs.run("j1", "s1"))


class TestSqliteDamage(DamageContract):
    jobs = TestSqliteJobs.jobs


class TestRedisDamage(DamageContract):
    jobs = TestRedisJobs.jobs
