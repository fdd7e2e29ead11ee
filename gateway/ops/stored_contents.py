"""Retention put together: the store's own way to remove, the jobs that keep a conversation."""

from gateway.services.retention import Retention
from gateway.services.workspaces import WORKSPACES, Workspaces
from gateway.settings import Settings
from gateway.store.jobs.job_stores import make_jobs
from gateway.store.port import Store
from gateway.store.removal.periods import CREATED
from gateway.store.removal.port import Removal
from gateway.store.removal.stored import Contents
from gateway.store.sqlite import SqliteStore


def make_removal(store: Store) -> Removal:
    """How conversations leave `store`."""
    if isinstance(store, SqliteStore):
        from gateway.store.removal.sqlite_removal import SqliteRemoval

        return SqliteRemoval(store)
    from gateway.store.redis import RedisStore
    from gateway.store.removal.redis_removal import RedisRemoval

    assert isinstance(store, RedisStore)
    return RedisRemoval(store)


def make_contents(store: Store) -> Contents:
    """All that is stored in `store`, as bytes."""
    if isinstance(store, SqliteStore):
        from gateway.store.removal.sqlite_stored import SqliteContents

        return SqliteContents(store)
    from gateway.store.redis import RedisStore
    from gateway.store.removal.redis_stored import RedisContents

    assert isinstance(store, RedisStore)
    return RedisContents(store)


async def make_retention(settings: Settings, store: Store) -> Retention:
    """What drops conversations of `store` when they are past their period."""
    jobs = make_jobs(store)

    async def keeps() -> frozenset[str]:
        return frozenset(job.conversation for job in await jobs.list_jobs() if job.state != "ended")

    created = await store.get(CREATED) is not None
    periods = settings.retention.in_force(created=created)
    return Retention(make_removal(store), periods, keeps, Workspaces(settings.home / WORKSPACES))
