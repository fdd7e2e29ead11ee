"""Retention put together: the store's own way to remove, the jobs that keep a conversation."""

from gateway.ops.workspaces import Workspaces
from gateway.retention.periods import CREATED
from gateway.retention.port import Removal
from gateway.retention.stored import Contents
from gateway.retention.sweeping import Retention
from gateway.settings import Settings
from gateway.store.port import Store
from gateway.store.sqlite import SqliteStore
from gateway.wiring.jobs import WORKSPACES, make_jobs


def make_removal(store: Store) -> Removal:
    """How conversations leave `store`."""
    if isinstance(store, SqliteStore):
        from gateway.retention.sqlite_removal import SqliteRemoval

        return SqliteRemoval(store)
    from gateway.retention.redis_removal import RedisRemoval
    from gateway.store.redis import RedisStore

    assert isinstance(store, RedisStore)
    return RedisRemoval(store)


def make_contents(store: Store) -> Contents:
    """All that is stored in `store`, as bytes."""
    if isinstance(store, SqliteStore):
        from gateway.retention.sqlite_stored import SqliteContents

        return SqliteContents(store)
    from gateway.retention.redis_stored import RedisContents
    from gateway.store.redis import RedisStore

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
