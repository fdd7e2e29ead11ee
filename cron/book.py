"""The book of jobs: created, shown, paused, run, changed and removed by people, the agent and the
command line."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from msgspec import Struct
from msgspec.structs import replace

from cron.drafts import Bind, Drafting, Fits, Hide, May
from gateway.clock import new_id
from gateway.jobs_port import (
    BY_HAND,
    MAX_CALLS,
    Asker,
    Draft,
    Job,
    JobRefused,
    JobRequest,
    JobRun,
    JobSettings,
    JobStore,
    RunState,
    Timetable,
)
from gateway.shown_jobs import Reason, Try
from gateway.texts import say

log = logging.getLogger("turnkeeper.jobs")

MAX_TRIES = 5


class BookDeps(Struct, frozen=True, kw_only=True):
    """The book's dependencies. `now` is the store's clock; `zone_of` returns the time zone of the
    person with these accounts, "" for none; `may`: whether a person may send reports to that
    address; `bind` returns what an approval of a command at an address is bound to; `fits` finds
    missing names in a request; `hide` redacts known secrets; `ring` is called when a due time may
    have changed."""

    now: Callable[[], Awaitable[float]]
    zone_of: Callable[[frozenset[str]], Awaitable[str]]
    may: May
    bind: Bind
    fits: Fits
    hide: Hide
    ring: Callable[[], None]


class JobBook:
    """gateway.jobs_port.Jobs and JobDrafts, over the store of jobs."""

    def __init__(
        self, jobs: JobStore, times: Timetable, settings: JobSettings, deps: BookDeps
    ) -> None:
        self._jobs = jobs
        self._times = times
        self._settings = settings
        self._deps = deps
        checks = (deps.may, deps.bind, deps.fits, deps.hide)
        self._drafting = Drafting(jobs, times, settings, checks, deps.now)
        self._calling = asyncio.Lock()  # calls at once would make each other's commits fail

    # ---- making and changing -------------------------------------------------------------

    async def draft(self, wish: JobRequest, asker: Asker, old: Job | None = None) -> Draft:
        zone = await self._deps.zone_of(asker.accounts | {asker.sender.key})
        return await self._drafting.draft(wish, asker, old, zone)

    async def look(self, wish: JobRequest, known: Job) -> Draft:
        return await self._drafting.look(wish, known, "", "")

    def apply_request(self, wish: JobRequest, known: Job) -> Job:
        return self._drafting.apply_request(wish, known, "", "")

    async def has_zone(self, asker: Asker) -> bool:
        known = await self._deps.zone_of(asker.accounts | {asker.sender.key})
        return bool(known) or self._settings.zone != "UTC"

    async def make(self, draft: Draft, name: str) -> Job:
        job = replace(draft.job, id=name, version=new_id())
        job = self._move_ahead(job, await self._deps.now())
        if job.state == "ended" and not job.of_file:
            return await self._jobs.get(name) or self._refuse_past(job)
        if not await self._jobs.commit(None, job, ()):
            return await self._jobs.get(name) or job
        log.info("job_made", extra={"job": name, "owner": job.owner.key})
        self._deps.ring()
        return job

    def _refuse_past(self, job: Job) -> Job:
        """Raise JobRefused if a one-time job was decided after its time."""
        raise JobRefused(say("jobs_past", job.owner.language), "schedule")

    def _move_ahead(self, job: Job, now: float) -> Job:
        """`job` with its next due time after `now`, for when it was decided on late."""
        if job.next_due > now or not job.schedule:
            return job
        due = self._times.find_next(job.schedule, job.zone, now)
        state = job.state if due is not None else "ended"
        return replace(job, next_due=due or 0.0, wake=due or 0.0, state=state)

    async def change(self, draft: Draft, *, moved: bool = False, shown: Job | None = None) -> bool:
        now = await self._deps.now()

        def is_kept(job: Job) -> bool:
            """Return True if its due times are unchanged, so that pending ones stay."""
            return (job.schedule, job.zone) == (draft.job.schedule, draft.job.zone)

        def apply(job: Job) -> Job | None:
            if shown is not None and job.wish not in (shown.wish, draft.job.wish):
                return None  # as drafted, also after a crash
            same = ["id", "owner", "made", "version"] + ([] if moved else ["conversation"])
            same += ["next_due", "wake"] if is_kept(job) and job.state != "ended" else []
            same += ["state", "why"] if job.state == "paused" and not moved else []
            new = replace(draft.job, **{name: getattr(job, name) for name in same})
            waits = is_kept(job) and (new.state == "paused" or job.state == "active")
            after = new if waits else self._move_ahead(new, now)
            past = after.state == "ended" and not moved
            return self._refuse_past(job) if past else after

        before = await self._jobs.get(draft.job.id)
        left = before is not None and (moved or not is_kept(before))
        skipped = await self._find_skipped(before, now) if left else ()
        return await self._write(draft.job.id, apply, skipped) is not None

    async def pause(self, name: str, why: Reason = "") -> bool:
        def apply(job: Job) -> Job | None:
            return replace(job, state="paused", why=why) if job.state == "active" else None

        return await self._write(name, apply) is not None

    async def resume(self, name: str) -> Job | None:
        now = await self._deps.now()

        def apply(job: Job) -> Job | None:
            if job.state != "paused":
                return None
            return self._move_ahead(replace(job, state="active", why=""), now)

        skipped = await self._find_skipped(await self._jobs.get(name), now)
        return await self._write(name, apply, skipped)

    async def _find_skipped(self, job: Job | None, now: float) -> tuple[JobRun, ...]:
        """Return the run that stands for all due times which a paused job missed until `now`."""
        if job is None or job.state != "paused" or not 0 < job.next_due <= now:
            return ()
        count = await asyncio.to_thread(
            self._times.count, job.schedule, job.zone, job.next_due, now
        )
        run = JobRun(
            job=job.id,
            slot=f"paused-{job.next_due:.0f}",
            due=job.next_due,
            state="skipped",
            reason="paused",
            at=now,
            ended=now,
            count=count,
            version=new_id(),
        )
        return (run,)

    async def remove(self, name: str) -> bool:
        for _ in range(MAX_TRIES):
            job = await self._jobs.get(name)
            if job is None:
                return False
            if await self._jobs.commit(job, None, ()):
                self._deps.ring()
                return True
        return False

    async def run_now(self, name: str, key: str) -> bool:
        now = await self._deps.now()
        run = JobRun(
            job=name, slot=f"{BY_HAND}{key}", due=now, state="queued", at=now, version=new_id()
        )
        for one in await self._jobs.list_unfinished(name):
            if one.by_hand and one.slot != run.slot and one.state != "retrying":
                return False  # for example after a double press
        return await self._write(name, lambda job: job, (run,)) is not None

    async def call(self, job: Job, slot: str, given: str) -> RunState:
        async with self._calling:
            return await self._call(job, slot, given)

    async def _call(self, job: Job, slot: str, given: str) -> RunState:
        known = await self._jobs.run(job.id, slot)
        if known is not None:
            return known.state
        now, paused = await self._deps.now(), job.state == "paused"
        waiting = await self._jobs.list_unfinished(job.id)
        if len(waiting) >= MAX_CALLS:
            raise JobRefused(say("jobs_busy", n=MAX_CALLS))
        run = JobRun(
            job=job.id,
            slot=slot,
            due=now,
            state="skipped" if paused else "queued",
            reason="paused" if paused else "",
            at=now,
            ended=now if paused else 0.0,
            given="" if paused else given,
            version=new_id(),
        )
        if await self._write(job.id, lambda job: job, (run,)) is None:
            raise JobRefused(say("jobs_busy", n=MAX_CALLS))
        return run.state

    async def retry(self, name: str, slot: str) -> bool:
        run = await self._jobs.run(name, slot)
        if run is None or run.state != "failed" or await self._jobs.get(name) is None:
            return False
        now = await self._deps.now()
        tried = run.add_try(Try(at=run.ended, reason=run.reason, text=run.text))
        again = replace(
            run,
            state="queued",
            tries=run.tries + 1,
            at=now,
            ended=0.0,
            tried=tried,
            version=new_id(),
        )
        done = await self._jobs.advance(run, again)
        self._deps.ring()
        return done

    async def _write(
        self, name: str, change: Callable[[Job], Job | None], runs: tuple[JobRun, ...] = ()
    ) -> Job | None:
        """Change a job as it is now; return the result, None if it stays as it is."""
        for _ in range(MAX_TRIES):
            job = await self._jobs.get(name)
            after = change(job) if job is not None else None
            if job is None or after is None:
                return None
            after = replace(after, version=new_id())
            if await self._jobs.commit(job, after, runs):
                self._deps.ring()
                return after
        return None

    # ---- looking -------------------------------------------------------------------------

    async def list_visible(self, asker: Asker) -> tuple[Job, ...]:
        found: dict[str, Job] = {}
        for account in sorted(asker.accounts | {asker.sender.key}):
            found |= {job.id: job for job in await self._jobs.list_jobs(account)}
        if asker.role == "admin":
            here = asker.conversation.id
            every = await self._jobs.list_jobs()
            found |= {job.id: job for job in every if job.conversation == here}
        if not asker.conversation.private:
            here = asker.conversation.id
            found = {name: job for name, job in found.items() if job.conversation == here}
        return tuple(sorted(found.values(), key=lambda job: (job.made, job.id)))

    def next_times(self, job: Job) -> tuple[float, ...]:
        if job.state != "active" or not job.next_due:
            return ()
        try:
            return (job.next_due, *self._drafting.times(job.schedule, job.zone, job.next_due, 2))
        except JobRefused:  # its schedule cannot be read any more
            return (job.next_due,)
