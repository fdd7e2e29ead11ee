"""The scheduler over a real store and a manual clock: every due time has one run and none is lost,
whatever the clock, the replicas and the crashes do."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agent_core import ambient
from agent_core.ambient import SystemClock
from cron import claims, scheduler
from cron.claims import MAX_QUEUED, slot_of
from cron.schedule import read_schedule
from cron.scheduler import MAX_SLEEP, Scheduler, advance_schedule
from cron.trigger import next_fire, times
from gateway.errors import StoreFailed
from gateway.jobs_port import Job, JobRun
from gateway.messages import GatewaySaid, Inbound, JobFired, Sender, read_conversation
from gateway.store.jobs.sqlite_jobs import SqliteJobs
from gateway.store.sqlite import SqliteStore
from tests.contracts.store_values import DAY, START, ManualClock
from tests.fakes.waiting import PATIENCE

HOUR = 3_600.0


class SchedulerRig:
    """A store, a clock, and an inbox that knows what it has seen."""

    def __init__(self, path: Path) -> None:
        self.clock = ManualClock()
        self.path = path
        self.fired: list[JobFired] = []
        self.told: list[GatewaySaid] = []
        self.over: set[str] = set()
        self.quick = True
        """Runs are over as soon as somebody looks."""
        self.fail: Callable[[], None] = lambda: None

    async def open(self) -> "SchedulerRig":
        self.store = await SqliteStore.open(self.path)
        self.jobs = SqliteJobs(self.store)
        self.scheduler = self.made()
        return self

    def made(self) -> Scheduler:
        return Scheduler(self.jobs, self.accept, self.settle)

    async def restart(self) -> None:
        await self.store.close()
        await self.open()

    async def accept(self, inbounds: Sequence[Inbound]) -> None:
        self.fail()
        for one in inbounds:
            if isinstance(one, GatewaySaid):
                self.told.append(one)
                continue
            assert isinstance(one, JobFired)
            if one.event not in {known.event for known in self.fired}:
                self.fired.append(one)

    async def settle(self, run: JobRun) -> bool:
        begun = any(one.turn == run.turn for one in self.fired)
        if begun and (self.quick or run.slot in self.over):
            done = replace(run, state="done", ended=ambient.now(), version=ambient.new_id())
            await self.jobs.advance(run, done)
        return begun

    async def job(self, schedule: str = "0 * * * *", **more: object) -> Job:
        made = replace(
            Job(
                id="j1", owner=Sender(platform="telegram", id="7"), title="look", prompt="look",
                conversation="telegram:1::7::p", schedule=schedule, zone="UTC", made=START,
                version="a",
            ),
            **more,
        )  # fmt: skip
        first = next_fire(read_schedule(made.schedule, made.zone), made.zone, START)
        made = advance_schedule(made, first)
        await self.jobs.commit(None, made, ())
        return made

    async def at(self, moment: float) -> float | None:
        self.clock.time = moment
        return await self.scheduler.tick()

    async def states(self) -> list[tuple[str, str, str]]:
        found = await self.jobs.runs("j1", 1000)
        return [(run.slot, run.state, run.reason) for run in reversed(found)]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[SchedulerRig]:
    made = SchedulerRig(tmp_path / "store.db")
    ambient.use(made.clock)
    yield await made.open()
    await made.store.close()
    ambient.use(SystemClock())


async def test_fires_when_due_and_not_before(world: SchedulerRig) -> None:
    job = await world.job()
    assert await world.at(job.next_due - 1) == job.next_due
    assert world.fired == []
    assert await world.at(job.next_due) == job.next_due + HOUR
    (fired,) = world.fired
    assert fired.due == job.next_due and fired.slot == slot_of(job.next_due)
    assert "look" in fired.text and fired.owner == job.owner


async def test_a_clock_that_goes_back_fires_nothing_twice(world: SchedulerRig) -> None:
    job = await world.job()
    await world.at(job.next_due)
    for back in (1.0, HOUR, DAY):
        await world.at(job.next_due - back)
    await world.at(job.next_due + 1)
    assert len(world.fired) == 1


@pytest.mark.parametrize(
    ("schedule", "ahead", "restarted"),
    [
        ("*/20 * * * *", HOUR, False),
        ("*/20 * * * *", DAY, True),
        ("every 50m", DAY, False),
        ("30 4,16 * * *", DAY, False),
        ("0 9 * * *", 40 * DAY, False),
        ("0 9 * * *", 40 * DAY, True),
    ],
)
async def test_a_clock_that_was_ahead_silences_nothing(
    world: SchedulerRig, schedule: str, ahead: float, restarted: bool
) -> None:
    """What it ran too early is not run again; every other time to come is, once."""
    job = await world.job(schedule)
    right = job.next_due - 1
    await world.at(right)
    for seconds in (0.0, 60.0, 120.0):
        await world.at(right + ahead + seconds)
    early = {one.due for one in world.fired}
    if restarted:
        await world.restart()
    right += 180
    end = right + min(ahead, DAY) + HOUR
    nearest: float | None = right
    while nearest is not None and nearest <= end:
        nearest = await world.at(nearest)
    due = times(read_schedule(schedule, "UTC"), "UTC", job.next_due)
    wanted = {one for one in takewhile(lambda one: one <= end, due) if one > right}
    ran = [one.due for one in world.fired]
    assert wanted and len(ran) == len(set(ran)) and wanted | early <= set(ran)


@pytest.mark.parametrize("schedule", ["*/20 * * * *", "every 50m", "0 9 * * 1", "30 4,16 * * *"])
async def test_the_first_look_reads_the_runs_of_no_job_in_order(
    world: SchedulerRig, schedule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of thousands, that would hold up the start."""
    job = await world.job(schedule)
    await world.at(job.next_due)  # its next time is that of a look now
    await world.restart()
    read = list[str]()
    sound = world.jobs.runs

    async def runs(job: str, limit: int) -> Any:
        read.append(job)
        return await sound(job, limit)

    monkeypatch.setattr(world.jobs, "runs", runs)
    await world.at(world.clock.time + 1)
    assert not read


async def test_a_clock_that_jumps_on_misses_nothing(world: SchedulerRig) -> None:
    job = await world.job()
    await world.at(job.next_due + 3 * HOUR + 120)
    states = await world.states()
    assert [state for _, state, _ in states] == ["skipped", "skipped", "skipped", "fired"]
    assert [one.due for one in world.fired] == [job.next_due + 3 * HOUR]


@pytest.mark.parametrize(("policy", "ran"), [("skip", 0), ("latest", 1), ("all", 2)])
async def test_missed_by_policy(world: SchedulerRig, policy: str, ran: int) -> None:
    job = await world.job("*/30 * * * *", missed=policy)
    now = job.next_due + 5 * HOUR + 120
    await world.at(now)
    for _ in range(4):
        await world.scheduler.tick()
    states = await world.states()
    assert len(states) == 11, "each has its row"
    assert [state for _, state, _ in states].count("done") == ran == len(world.fired)
    assert {why for _, state, why in states if state == "skipped"} == {"missed"}
    assert [one.due for one in world.fired] == sorted(one.due for one in world.fired)


async def test_down_for_a_month(world: SchedulerRig) -> None:
    job = await world.job("* * * * *")
    nearest = await world.at(job.next_due + 30 * DAY)
    assert len(world.fired) == 1 and nearest == job.next_due + 30 * DAY + 60
    runs = await world.jobs.runs("j1", 1000)
    assert sum(run.count for run in runs) == 30 * 24 * 60 + 1, "all are accounted for"
    assert sum(run.count for run in runs if run.reason == "missed") == 30 * 24 * 60


async def test_overlap_skip(world: SchedulerRig) -> None:
    job = await world.job()
    world.quick = False
    for n in range(4):
        await world.at(job.next_due + n * HOUR)
    assert len(world.fired) == 1
    assert [why for _, _, why in await world.states()] == ["", "overlap", "overlap", "overlap"]


async def test_overlap_queue(world: SchedulerRig) -> None:
    job = await world.job(overlap="queue")
    world.quick = False
    for n in range(MAX_QUEUED + 3):
        await world.at(job.next_due + n * HOUR)
    assert len(world.fired) == 1
    assert [why for _, _, why in await world.states()].count("overlap") == 2
    world.over = {slot_of(job.next_due)}
    await world.scheduler.tick()
    await world.scheduler.tick()
    assert [one.due for one in world.fired] == [job.next_due, job.next_due + HOUR]


async def test_overlap_replace(world: SchedulerRig) -> None:
    job = await world.job(overlap="replace")
    world.quick = False
    await world.at(job.next_due)
    await world.at(job.next_due + HOUR)
    first, second = world.fired
    assert second.replaces == first.turn and second.turn != first.turn


async def test_jitter_stays_within_its_bounds_and_is_the_same_everywhere(
    world: SchedulerRig,
) -> None:
    job = await world.job(jitter=600.0)
    assert job.next_due <= job.wake < job.next_due + 600
    assert advance_schedule(job, job.next_due).wake == job.wake
    assert await world.at(job.wake - 1) == job.wake
    await world.at(job.wake)
    assert [one.due for one in world.fired] == [job.next_due]


async def test_once_ends(world: SchedulerRig) -> None:
    job = await world.job("at 2027-02-01 09:00")
    assert await world.at(job.next_due) is None
    ended = await world.jobs.get("j1")
    assert ended is not None and ended.state == "ended" and len(world.fired) == 1


async def test_many_schedulers_claim_each_due_time_once(world: SchedulerRig) -> None:
    job = await world.job("* * * * *")
    others = [world.made() for _ in range(4)]
    for n in range(25):
        world.clock.time = job.next_due + n * 60
        await asyncio.gather(*(one.tick() for one in others))
    assert len(world.fired) == 25 == len({one.due for one in world.fired})


async def test_the_stores_clock_says_what_is_due(world: SchedulerRig) -> None:
    """Of replicas whose clocks differ the fastest does not fire first, nor the slowest late."""
    job = await world.job()
    shared = job.next_due - 1

    async def clock() -> float:
        return shared

    one = Scheduler(world.jobs, world.accept, world.settle, clock=clock)
    world.clock.time = job.next_due + HOUR
    assert await one.tick() == job.next_due
    assert world.fired == []
    shared, world.clock.time = job.next_due, job.next_due - HOUR
    assert await one.tick() == job.next_due + HOUR
    (run,) = await world.jobs.runs("j1", 9)
    assert len(world.fired) == 1 and run.at == shared


async def test_looking_moves_nothing_on(world: SchedulerRig) -> None:
    job = await world.job()
    world.clock.time = job.next_due + 1
    await world.jobs.list_jobs()
    await world.jobs.runs("j1", 10)
    assert await world.jobs.get("j1") == job
    await world.scheduler.tick()
    assert len(world.fired) == 1


async def test_a_crash_between_claim_and_firing_loses_nothing(world: SchedulerRig) -> None:
    job = await world.job()

    def crash() -> None:
        raise StoreFailed("gone")

    world.fail = crash
    with pytest.raises(StoreFailed):
        await world.at(job.next_due)
    world.fail = lambda: None
    await world.restart()
    await world.scheduler.tick()
    assert [one.due for one in world.fired] == [job.next_due]
    assert len(await world.states()) == 1


async def test_a_store_that_fails_between_claim_and_firing_delays_nothing(
    world: SchedulerRig,
) -> None:
    """The same process looks again, in the same minute."""
    job = await world.job()

    def fail() -> None:
        raise StoreFailed("for a moment")

    world.fail = fail
    for _ in range(2):
        with pytest.raises(StoreFailed):
            await world.at(job.next_due)
    assert world.fired == []
    world.fail = lambda: None
    await world.at(job.next_due + 1)
    assert [one.due for one in world.fired] == [job.next_due]
    assert len(await world.states()) == 1


async def test_edited_while_it_runs(world: SchedulerRig) -> None:
    job = await world.job()
    world.quick = False
    await world.at(job.next_due)
    now = await world.jobs.get("j1")
    assert now is not None
    edited = advance_schedule(
        replace(now, schedule="30 * * * *", version="e"), job.next_due + 1_800
    )
    await world.jobs.commit(now, edited, ())
    world.quick = True
    await world.at(job.next_due + 1_800)
    assert [one.due for one in world.fired] == [job.next_due, job.next_due + 1_800]


async def test_deleted_while_it_waits_to_be_tried_again(world: SchedulerRig) -> None:
    job = await world.job()
    world.quick = False
    await world.at(job.next_due)
    (run,) = await world.jobs.runs("j1", 1)
    waits = replace(run, state="retrying", tries=1, wake=world.clock.time + 300, version="r")
    await world.jobs.advance(run, waits)
    now = await world.jobs.get("j1")
    await world.jobs.commit(now, None, ())
    await world.at(world.clock.time + 301)
    await world.at(world.clock.time + DAY)
    assert len(world.fired) == 1 and await world.jobs.list_jobs() == ()
    assert [run.state for run in await world.jobs.runs("j1", 5)] == ["stopped"]


async def test_a_retry_is_another_turn_of_the_same_run(world: SchedulerRig) -> None:
    job = await world.job()
    world.quick = False
    await world.at(job.next_due)
    (run,) = await world.jobs.runs("j1", 1)
    waits = replace(run, state="retrying", tries=1, wake=world.clock.time + 300, version="r")
    await world.jobs.advance(run, waits)
    assert await world.at(world.clock.time + 299) == waits.wake
    await world.at(waits.wake)
    first, second = world.fired
    assert first.slot == second.slot and first.turn != second.turn
    assert len(await world.jobs.runs("j1", 5)) == 1


async def test_a_schedule_that_cannot_be_read_stops_no_other(world: SchedulerRig) -> None:
    job = await world.job()
    broken = replace(job, id="j0", schedule="nonsense", version="b")
    await world.jobs.commit(None, broken, ())
    await world.at(job.next_due)
    assert len(world.fired) == 1
    found = await world.jobs.get("j0")
    assert found is not None and found.state == "paused"
    (told,) = world.told
    assert told.conversation == read_conversation(broken.conversation)
    assert "nonsense" in told.text


def _break(world: SchedulerRig, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let claims of jobs named "bad", or messages of their runs, fail by a fault of ours."""
    if kind == "claim":
        sound = claims.claims

        def failing(job: Job, *more: Any) -> Any:
            assert job.title != "bad"
            return sound(job, *more)

        monkeypatch.setattr(scheduler, "claims", failing)
        return
    sound_accept = world.accept

    async def accept(inbounds: Sequence[Inbound]) -> None:
        assert not any(isinstance(one, JobFired) and one.title == "bad" for one in inbounds)
        await sound_accept(inbounds)

    world.scheduler = Scheduler(world.jobs, accept, world.settle)


@pytest.mark.parametrize("kind", ["claim", "message", "chat"])
async def test_jobs_that_fail_hold_up_no_other_and_come_to_an_end(
    world: SchedulerRig, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of them than are looked at together, due before the sound one."""
    monkeypatch.setattr(scheduler, "AT_ONCE", 20)
    _break(world, kind, monkeypatch)
    sound = await world.job("5 * * * *")
    where = "no conversation" if kind == "chat" else sound.conversation
    bad = [
        replace(sound, id=f"bad{n}", title="bad", conversation=where, version=f"b{n}")
        for n in range(scheduler.AT_ONCE + 10)
    ]
    for one in bad:
        await world.jobs.commit(None, advance_schedule(one, sound.next_due - 60), ())
    await world.at(sound.next_due)
    assert [one.job for one in world.fired] == [sound.id], "the sound one was not held up"
    for minute in range(1, 70):
        await world.at(sound.next_due + 60 * minute)
    assert [one.job for one in world.fired] == [sound.id] * 2
    if kind == "claim":
        states = {job.state for job in await world.jobs.list_jobs() if job.title == "bad"}
        assert states == {"paused"}
    else:
        for one in bad:
            ends = [(run.state, run.reason) for run in await world.jobs.runs(one.id, 9)]
            assert ends.count(("stopped", "bug")) == 1
    assert len(world.told) == (0 if kind == "chat" else len(bad))
    assert all("went wrong" in told.text for told in world.told)


async def test_a_job_that_fails_now_and_then_goes_on(
    world: SchedulerRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await world.job()
    sound, fails = claims.claims, iter([True, True, False] * 20)

    def failing(*given: Any) -> Any:
        assert not next(fails)
        return sound(*given)

    monkeypatch.setattr(scheduler, "claims", failing)
    for minute in range(5 * 60):
        await world.at(job.next_due + 60 * minute)
    assert len(world.fired) == 5 and not world.told


async def test_the_clock_holds_one_wake_up_and_rings(tmp_path: Path) -> None:
    """On the machine's clock, with APScheduler itself."""
    made = await SchedulerRig(tmp_path / "store.db").open()
    task = asyncio.create_task(made.scheduler.run())
    try:
        job = await made.job("every 1s", made=ambient.now())
        soon = advance_schedule(replace(job, version="b"), float(int(ambient.now()) + 1))
        await made.jobs.commit(job, soon, ())
        made.scheduler.ring()
        async with asyncio.timeout(PATIENCE):
            while not made.fired:
                await asyncio.sleep(0.01)
        assert ambient.now() - made.fired[0].due < 5
    finally:
        task.cancel()
        await asyncio.wait({task})
        await made.store.close()
    assert MAX_SLEEP <= 60


async def test_a_clock_that_is_set_back_does_not_stop_the_wake_ups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a day, while a wake-up is set for a moment that is a day away then."""
    monkeypatch.setattr(scheduler, "now", lambda: ambient.now() + 86_400)
    monkeypatch.setattr(scheduler, "MAX_SLEEP", 0.05)
    monkeypatch.setattr(scheduler, "LATE", 0.05)
    looks = asyncio.Semaphore(0)

    async def look() -> None:
        looks.release()

    made = await SchedulerRig(tmp_path / "store.db").open()
    await made.job()
    made.scheduler._before = look
    task = asyncio.create_task(made.scheduler.run())
    try:
        async with asyncio.timeout(PATIENCE):
            for _ in range(3):
                await looks.acquire()
    finally:
        task.cancel()
        await asyncio.wait({task})
        await made.store.close()
