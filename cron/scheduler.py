"""Starts the runs of jobs.

One wake-up is set at a time, for the nearest due time in the store; what is due is claimed there,
so that each due time has one run, however many replicas look. APScheduler is the clock and knows
nothing of jobs. A wake-up is never further away than a minute: a clock that was set, or a machine
that slept, is noticed then. The next due time follows from the last recorded one, never from now;
times that a clock which was ahead took from the future are given back once it is right again.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import takewhile
from typing import TypeVar

from msgspec.structs import replace

from cron.claims import claims, slot_of
from cron.firing import Firings
from cron.job import Every, ScheduleError
from cron.schedule import read_schedule
from cron.timetable import Times
from cron.trigger import find_missed, next_fire, times
from gateway.clock import limit, new_id, now
from gateway.errors import StoreFailed, Unreadable
from gateway.jobs_port import Job, JobRun, JobStore
from gateway.messages import GatewaySaid, digest, read_conversation
from gateway.ports import Accept
from gateway.shown_jobs import Reason
from gateway.texts import say

log = logging.getLogger("turnkeeper.cron")

T = TypeVar("T")
MAX_SLEEP = 60.0
"""Seconds after which due times are looked at in any case: the clock may have been set."""
LATE = 1.0
"""Seconds that a wake-up may be late before the scheduler looks without it."""
AT_ONCE = 100
FIRED_AGAIN = 60.0
"""Seconds after which a run that nobody took up is fired again; the inbox deduplicates it."""
MIN_FAILURES, LONGEST = 3, 3600.0
"""Failures alone, and the seconds over which they came, after which a job or a run is given up."""


async def read_clock() -> float:
    """This machine's clock."""
    return now()


class Failures:
    """Unexpected failures of each job and run since it was handled last."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, float]] = {}

    def forget(self, key: str) -> None:
        """Note that it was handled."""
        self._known.pop(key, None)

    def note(self, key: str, moment: float) -> bool:
        """Count a failure; return True if it is to be given up."""
        count, since = self._known.get(key, (0, moment))
        self._known[key] = count + 1, since
        if count + 1 < MIN_FAILURES or moment - since < LONGEST:
            return False
        self.forget(key)
        return True


class Scheduler:
    """Claims and fires what is due. `accept` stores an inbound value; `settle` records a run's
    outcome, and returns whether its turn has begun; `before` is called ahead of each look, at least
    once a minute. `clock` is one clock for all replicas, otherwise the fastest would fire first.
    `bell` is set when a due time may have changed, or a run may be over."""

    def __init__(
        self,
        jobs: JobStore,
        accept: Accept,
        settle: Callable[[JobRun], Awaitable[bool]],
        before: Callable[[], Awaitable[None]] | None = None,
        clock: Callable[[], Awaitable[float]] = read_clock,
        *,
        bell: asyncio.Event | None = None,
    ) -> None:
        self._jobs = jobs
        self._clock = clock
        self._accept = accept
        self._settle = settle
        self._before = before
        self._rung = bell or asyncio.Event()
        self._firings = Firings(jobs, Times())
        self._failures = Failures()
        self._cut_off = True
        """True if the last look was interrupted, or there was none: a run may be claimed and not
        fired."""
        self._latest = float("inf")
        """The moment of the last look; before the first one the clock may have been ahead."""

    def ring(self) -> None:
        """Note that a due time may have changed, or a run may be over."""
        self._rung.set()

    async def run(self) -> None:
        """Run until cancelled. The clock is started with the first job."""
        while True:
            self._rung.clear()
            if await self._tick_due() is not None:
                break
            with suppress(TimeoutError):  # another replica may have created one
                async with limit(MAX_SLEEP):
                    await self._rung.wait()
        await self._wound_up()

    async def _wound_up(self) -> None:
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
        from apscheduler.schedulers.asyncio import AsyncIOScheduler
        from apscheduler.triggers.date import DateTrigger

        wakes = AsyncIOScheduler(timezone=UTC)
        wakes.start()
        try:
            while True:
                self._rung.clear()
                left = await self._tick_due()
                nap = max(0.02, min(MAX_SLEEP if left is None else left, MAX_SLEEP))
                at = DateTrigger(datetime.fromtimestamp(now() + nap, UTC))
                wakes.add_job(
                    self.ring, at, id="wake", replace_existing=True, misfire_grace_time=None
                )
                with suppress(TimeoutError):  # the wake-up goes by a clock that may be set back
                    async with limit(nap + LATE):
                        await self._rung.wait()
        finally:
            wakes.shutdown(wait=False)

    async def _tick_due(self) -> float | None:
        """Process what is due; return the seconds until there is more, None if nothing is known."""
        try:
            nearest = await self.tick()
            return None if nearest is None else nearest - await self._clock()
        except StoreFailed as error:
            log.error("jobs_not_read", extra={"why": str(error)})
            return 5.0
        except Exception:  # boundary: one bad row must not stop the clock
            log.exception("jobs_failed")
            return None

    async def tick(self) -> float | None:
        """Process everything that is due now; return the nearest moment after it."""
        if self._before is not None:
            await self._before()
        unsure, self._cut_off = self._cut_off, True
        moment = await self._clock()
        if moment < self._latest:
            jobs = await self._jobs.list_jobs()
            for job in await asyncio.to_thread(_find_passed_over, jobs, moment):
                await self._contain(self._give_back(job, moment), job)
        self._latest = moment
        for run in await self._jobs.list_unfinished():
            await self._contain(self._look_after(run, unsure, moment), run)
        nearest = await self._handle_due(moment)
        self._cut_off = False
        return nearest

    async def _handle_due(self, moment: float) -> float | None:
        """Handle all that is due up to `moment`, and what becomes due meanwhile; return the nearest
        moment after it. What fails is left for the next look, and holds up nothing."""
        failed: set[str] = set()
        while True:
            due = await self._jobs.due(moment, AT_ONCE + len(failed))
            handled, failures = False, len(failed)
            found: tuple[Job | JobRun, ...] = (*due.jobs, *due.runs)
            for one in found:
                if name_work(one) in failed:
                    continue
                done = await self._contain(self._handle(one, moment), one)
                if done is None:
                    failed.add(name_work(one))
                handled = handled or bool(done)
            if not handled and len(failed) == failures:
                return due.next  # nothing is left, or others were faster
            moment = await self._clock()

    def _handle(self, due: Job | JobRun, moment: float) -> Awaitable[bool]:
        return self._try_claim(due, moment) if isinstance(due, Job) else self._retry(due, moment)

    async def _contain(self, work: Awaitable[T], about: Job | JobRun) -> T | None:
        """Return the result of `work`, None if it failed: a failure of one job does not affect
        others. One that fails for long is given up. StoreFailed."""
        job = about.id if isinstance(about, Job) else about.job
        try:
            result = await work
        except Unreadable as error:
            log.error("job_not_readable", extra={"job": job, "why": str(error)})
        except StoreFailed:
            raise
        except Exception:  # boundary: a bug affects one job only
            log.exception("job_failed", extra={"job": job})
        else:
            self._failures.forget(name_work(about))
            return result
        if self._failures.note(name_work(about), await self._clock()):
            await self._give_up(about)
        return None

    async def _give_up(self, about: Job | JobRun) -> None:
        """Tell the chat that the job is paused, or its run stopped; then do so."""
        log.error("job_given_up", extra={"about": name_work(about)})
        await self._contain(self._tell_end(about), about)  # its chat may be what is damaged
        await self._contain(self._end(about), about)

    async def _tell_end(self, about: Job | JobRun) -> None:
        job = about if isinstance(about, Job) else await self._jobs.get(about.job)
        if job is not None:
            await self._tell(job, _describe_end(about, job), f"given_up:{name_work(about)}")

    async def _end(self, about: Job | JobRun) -> None:
        if isinstance(about, Job):
            await self._jobs.commit(about, _make_paused(about), ())
        else:
            await self._jobs.advance(about, _make_stopped(about, "bug"))

    async def _tell(self, job: Job, text: str, event: str) -> None:
        where = read_conversation(job.conversation)
        await self._accept([GatewaySaid(conversation=where, event=event, text=text)])

    async def _give_back(self, job: Job, moment: float) -> None:
        """Make `job` due at its first time to come that has had no run, if a clock that was ahead
        went past it."""
        newest = await self._jobs.runs(job.id, 1)
        if max((job.made, *(run.at for run in newest))) <= moment:
            return  # no clock was ahead when its next time was computed
        for due in _list_passed(job, moment):
            run = await self._jobs.run(job.id, slot_of(due))
            if run is None or (run.state == "skipped" and run.at > moment):
                after = advance_schedule(replace(job, version=new_id()), due)
                if await self._jobs.commit(job, after, ()):
                    log.warning("job_given_back", extra={"job": job.id, "due": slot_of(due)})
                return

    async def _try_claim(self, job: Job, moment: float) -> bool:
        """Claim like `_claim`. A job whose schedule cannot be read any more is paused, and its chat
        told of it: the message goes first, as it is recognised by its event when it is repeated."""
        try:
            return await self._claim(job, moment)
        except ScheduleError as error:
            log.error("job_not_readable", extra={"job": job.id, "why": str(error)})
            schedule = f"{job.schedule} ({job.zone})"
            text = say("jobs_unreadable", job.owner.language, title=job.title, schedule=schedule)
            await self._tell(job, text, f"unreadable:{job.id}:{job.version}")
            return await self._jobs.commit(job, _make_paused(job), ())

    async def _claim(self, job: Job, moment: float) -> bool:
        """Claim the due times of `job` up to `moment`, and fire them; False if another did."""
        schedule = read_schedule(job.schedule, job.zone)
        reached = await asyncio.to_thread(find_missed, schedule, job.zone, job.next_due, moment)
        following = next_fire(schedule, job.zone, reached.times[-1])
        unfinished = await self._jobs.list_unfinished(job.id)
        runs = claims(job, reached, moment, unfinished)
        runs = tuple(replace(run, version=new_id()) for run in runs)
        after = advance_schedule(replace(job, version=new_id()), following)
        if not await self._jobs.commit(job, after, runs):
            return False
        skipped = sum(run.count for run in runs if run.state == "skipped")
        log.info("job_claimed", extra={"job": job.id, "runs": len(runs), "skipped": skipped})
        for run in runs:
            if run.state == "fired":
                await self._fire(job, run)
        return True

    async def _retry(self, run: JobRun, moment: float) -> bool:
        """A run that failed by no fault of its own is tried once more."""
        job = await self._jobs.get(run.job)
        if job is None:
            return await self._jobs.advance(run, _make_stopped(run, "deleted"))
        if job.state == "paused":
            return await self._jobs.advance(run, _make_stopped(run, "paused"))
        begun = replace(run, state="fired", wake=0.0, at=moment, version=new_id())
        if not await self._jobs.advance(run, begun):
            return False
        await self._fire(job, begun)
        return True

    async def _look_after(self, run: JobRun, unsure: bool, moment: float) -> None:
        """Look after a run that is not over: not taken up, or its turn may have ended, or it waits
        for another."""
        match run.state:
            case "fired":
                begun = await self._settle(run)
                if not begun and (unsure or moment - run.at > FIRED_AGAIN):
                    await self._fire_again(run)
            case "queued":
                await self._start_queued(run, moment)
            case _:
                return

    async def _fire_again(self, run: JobRun) -> None:
        job = await self._jobs.get(run.job)
        if job is None:
            await self._jobs.advance(run, _make_stopped(run, "deleted"))
        else:
            await self._fire(job, run)

    async def _start_queued(self, run: JobRun, moment: float) -> None:
        """Begin a run that waited for the one before it; one by hand waits for no retry."""
        others = list(await self._jobs.list_unfinished(run.job))
        if run.by_hand:
            others = [one for one in others if one.state != "retrying"]
        if others and others[0].slot != run.slot:
            return
        job = await self._jobs.get(run.job)
        if job is None:
            await self._jobs.advance(run, _make_stopped(run, "deleted"))
            return
        begun = replace(run, state="fired", at=moment, version=new_id())
        if await self._jobs.advance(run, begun):
            await self._fire(job, begun)

    async def _fire(self, job: Job, run: JobRun) -> None:
        """Put the run into its conversation's inbox; a second time it is known there."""
        await self._accept([await self._firings.make(job, run)])


def advance_schedule(job: Job, due: float | None) -> Job:
    """`job` with its next due time; without one it has ended."""
    if due is None:
        return replace(job, state="ended", next_due=0.0, wake=0.0)
    return replace(job, next_due=due, wake=due + _jitter(job, due))


def _find_passed_over(jobs: Sequence[Job], moment: float) -> list[Job]:
    """Return the jobs that `_give_back` is for: few of thousands."""
    return [job for job in jobs if job.state == "active" and _is_passed_over(job, moment)]


def _is_passed_over(job: Job, moment: float) -> bool:
    try:
        return any(_list_passed(job, moment))
    except Exception:  # noqa: BLE001  # boundary: it fails again where it affects this job only
        return True


def _list_passed(job: Job, moment: float) -> Iterator[float]:
    """Yield the times after `moment` that the job's next due time has passed over: none, unless a
    clock was ahead. A schedule that cannot be read has none, and is told of when it is due."""
    try:
        schedule = read_schedule(job.schedule, job.zone)
    except ScheduleError:
        return
    after = moment
    if isinstance(schedule, Every):  # from where the interval leads to the next due time
        steps = math.ceil((job.next_due - moment) / schedule.seconds)
        after = job.next_due - steps * schedule.seconds
    yield from takewhile(lambda due: due < job.next_due, times(schedule, job.zone, after))


def _jitter(job: Job, due: float) -> float:
    """Seconds of delay, the same on every replica, different from time to time."""
    if not job.jitter:
        return 0.0
    share = int(digest(f"{job.id} {due}".encode())[:8], 16) / 0x1_0000_0000
    return job.jitter * share


def name_work(about: Job | JobRun) -> str:
    """The job's or the run's own name, with its version: a changed one is another."""
    name = about.id if isinstance(about, Job) else f"{about.job} {about.slot}"
    return f"{name} {about.version}"


def _describe_end(about: Job | JobRun, job: Job) -> str:
    """Tell that the job, or one run of it, was given up."""
    language = job.owner.language
    why = say("jobs_why_bug", language)
    if isinstance(about, Job):
        return f"{say('jobs_is_paused', language, title=job.title)} {why}"
    when = Times().format_moment(about.due, job.zone)
    return say("jobs_failed", language, title=job.title, when=when, why=why, paused="").strip()


def _make_paused(job: Job) -> Job:
    return replace(job, state="paused", why="bug", version=new_id())


def _make_stopped(run: JobRun, why: Reason) -> JobRun:
    return replace(run, state="stopped", reason=why, wake=0.0, ended=now(), version=new_id())
