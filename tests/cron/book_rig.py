"""A book of jobs over a store in a file, with a clock that can be set."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from agent_core import ambient
from agent_core.ambient import SystemClock
from gateway.features.jobs.deps import JobDeps
from gateway.jobs_port import Asker, Job, JobRequest, JobSettings
from gateway.messages import Conversation, Inbound, JobFailed, Sender
from gateway.store.jobs.sqlite_jobs import SqliteJobs
from gateway.store.sqlite import SqliteStore
from gateway.wiring.jobs import make_job_ports
from tests.contracts.store_values import ManualClock

ROOM = Conversation(platform="telegram", account="1", channel="7", private=True)
ADA = Asker(conversation=ROOM, sender=Sender(platform="telegram", id="7"), role="user")
BOB = Asker(conversation=ROOM, sender=Sender(platform="telegram", id="8"), role="user")
ROOT = replace(BOB, role="admin")
WISH = JobRequest(title="Look", prompt="look", schedule="0 9 * * *")


class BookRig:
    def __init__(self, store: SqliteStore, clock: ManualClock, folder: Path) -> None:
        self.clock, self.jobs = clock, SqliteJobs(store)
        self.told: list[JobFailed] = []
        known = JobSettings(per_person=2)
        platforms = frozenset(("telegram", "web"))
        self.deps = JobDeps(store=store, accept=self.accept, folder=folder, platforms=platforms)
        self.ports = make_job_ports(self.jobs, known, self.deps)
        self.book, self.drafts = self.ports.book, self.ports.drafts

    async def accept(self, inbounds: Sequence[Inbound]) -> None:
        self.told += [one for one in inbounds if isinstance(one, JobFailed)]

    async def make(self, name: str = "j1", asker: Asker = ADA, wish: JobRequest = WISH) -> Job:
        return await self.drafts.make(await self.drafts.draft(wish, asker), name)


@asynccontextmanager
async def living_book(tmp_path: Path) -> AsyncIterator[BookRig]:
    """A book until the test is over."""
    clock = ManualClock()
    ambient.use(clock)
    store = await SqliteStore.open(tmp_path / "store.db")
    yield BookRig(store, clock, tmp_path)
    await store.close()
    ambient.use(SystemClock())
