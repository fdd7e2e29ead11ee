"""Retention put together: the store's own way to remove, the jobs that keep a conversation."""

from agent_core import ambient
from agent_core.sandboxes.buckets.bucket import make_bucket
from agent_core.sandboxes.buckets.settings import read_bucket
from agent_core.sandboxes.e2b.erasing import BoxEraser
from gateway.ops import lock
from gateway.services.audit_trail import AuditTrail
from gateway.services.retention import Retention
from gateway.services.workspaces import WORKSPACES, HoldsWorkspaces, Workspaces
from gateway.settings import Settings
from gateway.store.audit_chain import AuditSigner
from gateway.store.jobs.job_stores import make_jobs
from gateway.store.port import Store
from gateway.store.removal.periods import CREATED
from gateway.store.removal.port import Removal
from gateway.store.removal.stored import Contents
from gateway.store.sqlite import SqliteStore


def make_removal(store: Store) -> Removal:
    """Make the removal of conversations from `store`."""
    if isinstance(store, SqliteStore):
        from gateway.store.removal.sqlite_removal import SqliteRemoval

        return SqliteRemoval(store)
    from gateway.store.redis import RedisStore
    from gateway.store.removal.redis_removal import RedisRemoval

    assert isinstance(store, RedisStore)
    return RedisRemoval(store)


def make_contents(store: Store) -> Contents:
    """Make the access to everything stored in `store`, as bytes."""
    if isinstance(store, SqliteStore):
        from gateway.store.removal.sqlite_stored import SqliteContents

        return SqliteContents(store)
    from gateway.store.redis import RedisStore
    from gateway.store.removal.redis_stored import RedisContents

    assert isinstance(store, RedisStore)
    return RedisContents(store)


def make_trail(settings: Settings, store: Store) -> AuditTrail:
    """The audit of `store`, with this folder's key and name. Blocks."""
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    given = [settings.audit_key] if settings.audit_key else []
    signer = AuditSigner(lock.read_audit_keys(settings.home, given))
    owner = settings.replica or lock.replica_id(settings.home, ambient.new_id)
    return AuditTrail(signer, make_contents(store), store, owner)


def make_workspaces(settings: Settings) -> Workspaces:
    """The folders of conversations, and who else holds something of them. SettingsError."""
    holders: list[HoldsWorkspaces] = []
    if (bucket := make_bucket(read_bucket(settings.env))) is not None:
        holders.append(bucket)
    if settings.e2b.api_key:
        holders.append(BoxEraser(settings.e2b))
    return Workspaces(settings.home / WORKSPACES, holders)


async def make_retention(settings: Settings, store: Store, trail: AuditTrail) -> Retention:
    """Make the retention that deletes conversations of `store` past their period."""
    jobs = make_jobs(store)

    async def list_kept() -> frozenset[str]:
        return frozenset(job.conversation for job in await jobs.list_jobs() if job.state != "ended")

    created = await store.get(CREATED) is not None
    periods = settings.retention.in_force(created=created)
    workspaces = make_workspaces(settings)
    return Retention(make_removal(store), periods, list_kept, workspaces, trail)
