"""What people do with jobs: limits, pauses, runs by hand, and runs that never began."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_core import ambient
from agent_core.ambient import SystemClock
from cron.timetable import Times
from gateway.jobs_port import Asker, Job, JobRefused, JobRequest, JobRun
from gateway.messages import Conversation, Inbound, JobFailed, Sender
from gateway.services.jobs.book import NOT_BEGUN, JobService
from gateway.services.jobs.deps import means_of
from gateway.services.jobs.settings import JobSettings, read_jobs
from gateway.store.jobs.sqlite_jobs import SqliteJobs
from gateway.store.sqlite import SqliteStore
from tests.contracts.store_values import DAY, ManualClock

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
        means = means_of(store, self.accept, folder, frozenset(("telegram", "web")))
        self.book = JobService(self.jobs, Times(), known, means)

    async def accept(self, inbounds: Sequence[Inbound]) -> None:
        self.told += [one for one in inbounds if isinstance(one, JobFailed)]

    async def make(self, name: str = "j1", asker: Asker = ADA, wish: JobRequest = WISH) -> Job:
        return await self.book.make(await self.book.draft(wish, asker), name)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[BookRig]:
    clock = ManualClock()
    ambient.use(clock)
    store = await SqliteStore.open(tmp_path / "store.db")
    yield BookRig(store, clock, tmp_path)
    await store.close()
    ambient.use(SystemClock())


async def test_made_once_whoever_repeats_it(world: BookRig) -> None:
    first = await world.make()
    assert await world.make() == first
    assert await world.jobs.list_jobs() == (first,)


async def test_a_person_has_so_many(world: BookRig) -> None:
    await world.make("j1")
    await world.make("j2")
    with pytest.raises(JobRefused, match="already have 2 jobs"):
        await world.make("j3")
    assert await world.make("j4", BOB)


async def test_not_too_often(world: BookRig) -> None:
    for schedule in ("*/10 * * * * *", "every 59s", "58,59 * * * * *"):
        with pytest.raises(JobRefused, match="too often"):
            await world.book.draft(replace(WISH, schedule=schedule), ADA)
    assert await world.book.draft(replace(WISH, schedule="* * * * *"), ADA)


async def test_no_zone_is_the_gateways_and_shown(world: BookRig) -> None:
    draft = await world.book.draft(WISH, ADA)
    assert draft.job.zone == "UTC" and len(draft.times) == 3


async def test_who_sees_what(world: BookRig) -> None:
    job = await world.make()
    assert await world.book.list_visible(ADA) == (job,)
    assert await world.book.list_visible(BOB) == ()
    assert await world.book.list_visible(ROOT) == (job,)
    linked = replace(BOB, accounts=frozenset({"telegram:7", "telegram:8"}))
    assert await world.book.list_visible(linked) == (job,)


async def test_a_group_sees_nothing_of_what_belongs_elsewhere(world: BookRig) -> None:
    await world.make()
    group = replace(ROOM, channel="-9", private=False)
    assert await world.book.list_visible(replace(ADA, conversation=group)) == ()
    own = await world.make("j2", replace(ADA, conversation=group))
    assert await world.book.list_visible(replace(ADA, conversation=group)) == (own,)
    assert len(await world.book.list_visible(ADA)) == 2


async def test_a_pause_leaves_a_row_and_no_backlog(world: BookRig) -> None:
    job = await world.make()
    assert await world.book.pause("j1") and not await world.book.pause("j1")
    world.clock.time = job.next_due + 3 * DAY
    assert (await world.jobs.due(world.clock.time, 9)).jobs == ()
    resumed = await world.book.resume("j1")
    assert resumed is not None and resumed.next_due > world.clock.time
    (run,) = await world.jobs.runs("j1", 9)
    assert (run.state, run.reason, run.count) == ("skipped", "paused", 4)


async def test_confirmed_late_begins_with_the_next_time(world: BookRig) -> None:
    draft = await world.book.draft(WISH, ADA)
    world.clock.time += 10 * DAY
    job = await world.book.make(draft, "j1")
    assert world.clock.time < job.next_due <= world.clock.time + DAY


async def test_a_change_keeps_what_the_job_is(world: BookRig) -> None:
    job = await world.make()
    draft = await world.book.draft(replace(WISH, schedule="0 8 * * *"), BOB, job)
    assert await world.book.change(draft)
    now = await world.jobs.get("j1")
    assert now is not None and now.schedule == "0 8 * * *"
    assert (now.owner, now.conversation, now.made) == (job.owner, job.conversation, job.made)


async def test_run_by_hand_once_for_each_press(world: BookRig) -> None:
    job = await world.make()
    for _ in range(2):
        assert await world.book.run_now("j1", "5")
    assert [run.slot for run in await world.jobs.list_unfinished()] == ["now-5"]
    after = await world.jobs.get("j1")
    assert after is not None and after.next_due == job.next_due


async def test_what_never_began_is_told_after_a_day(world: BookRig) -> None:
    await world.make()
    run = JobRun(job="j1", slot="s", due=1.0, state="fired", at=world.clock.time, version="r")
    job = await world.jobs.get("j1")
    assert job is not None
    await world.jobs.commit(job, replace(job, version="x"), (run,))
    assert not await world.book.settle(run) and world.told == []
    world.clock.time += NOT_BEGUN + 1
    assert not await world.book.settle(run)
    assert "never started" in world.told[0].text
    assert await world.jobs.list_unfinished() == ()
    assert await world.book.retry("j1", "s") and not await world.book.retry("j1", "s")


def test_settings() -> None:
    given = {"JOBS_PER_PERSON": "3", "JOBS_TIMEZONE": "Europe/Berlin"}
    known = read_jobs(lambda name, parse: parse(given.get(name, "")))
    assert known == JobSettings(per_person=3, zone="Europe/Berlin")
    with pytest.raises(ValueError, match="time zone"):
        read_jobs(lambda name, parse: parse("Nowhere" if name == "JOBS_TIMEZONE" else ""))
