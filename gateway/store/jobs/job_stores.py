"""Chooses the store of jobs that belongs to a store."""

from gateway.jobs_port import JobStore
from gateway.store.port import Store
from gateway.store.sqlite import SqliteStore


def make_jobs(store: Store) -> JobStore:
    """The jobs of `store`."""
    if isinstance(store, SqliteStore):
        from gateway.store.jobs.sqlite_jobs import SqliteJobs

        return SqliteJobs(store)
    from gateway.store.jobs.redis_jobs import RedisJobs
    from gateway.store.redis import RedisStore

    assert isinstance(store, RedisStore)
    return RedisJobs(store)
