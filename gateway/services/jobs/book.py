"""What people, the agent and the command line do with jobs: make, show, pause, run, change, remove.
And what becomes of a run when its turn is over."""

import asyncio
import logging
from collections.abc import Callable

from msgspec.structs import replace

from agent_core import ambient
from gateway.jobs_port import (
    Asker,
    Draft,
    Job,
    JobRefused,
    JobRequest,
    JobRun,
    JobStore,
    RunState,
    Timetable,
)
from gateway.messages import JobFailed, read_conversation
from gateway.services.jobs.delivery import deliver
from gateway.services.jobs.deps import JobDeps
from gateway.services.jobs.drafts import Drafting
from gateway.services.jobs.outcomes import RunOutcome, outcome
from gateway.services.jobs.settings import JobSettings
from gateway.services.jobs.zones import Zones
from gateway.shown_jobs import Reason, Try
from gateway.texts import Key, say

log = logging.getLogger("turnkeeper.jobs")

RETRIES = (300.0, 900.0, 1_800.0)
"""Seconds after which a run that failed by what may be over is tried again."""
NOT_BEGUN = 86_400.0
"""Seconds after which a run that never began is given up."""
MAX_TRIES = 5
MAX_KEPT, MAX_SAID = 10, 600
"""Tries that a run's row keeps, and characters of each."""
MAX_CALLS = 20
"""Runs of a job that calls from outside began and that are not over."""


class JobService:
    """All jobs. `ring` is called when a due time may have changed."""

    def __init__(
        self, jobs: JobStore, times: Timetable, settings: JobSettings, means: JobDeps
    ) -> None:
        self.jobs = jobs
        self.times = times
        self.settings = settings
        self.means = means
        self.zones = Zones(means.store)
        self.drafting = Drafting(jobs, times, settings, means.may, means.bind)
        self.ring: Callable[[], None] = lambda: None

    # ---- making and changing -------------------------------------------------------------

    async def draft(self, wish: JobRequest, asker: Asker, old: Job | None = None) -> Draft:
        """What `wish` would be; `old`: the job that it changes. Refused says why it cannot be."""
        zone = await self.zones.of(asker.accounts | {asker.sender.key})
        return await self.drafting.draft(wish, asker, old, zone)

    async def has_zone(self, asker: Asker) -> bool:
        """The person chose a time zone, or the gateway has one."""
        known = await self.zones.of(asker.accounts | {asker.sender.key})
        return bool(known) or self.settings.zone != "UTC"

    async def make(self, draft: Draft, name: str) -> Job:
        """The job of `draft` under the id `name`; a second time the one that is there."""
        job = replace(draft.job, id=name, version=ambient.new_id())
        job = self._ahead(job, await self.means.store.now())
        if not await self.jobs.commit(None, job, ()):
            return await self.jobs.get(name) or job
        log.info("job_made", extra={"job": name, "owner": job.owner.key})
        self.ring()
        return job

    def _ahead(self, job: Job, now: float) -> Job:
        """`job` with its next due time after `now`, for when it was decided on late."""
        if job.next_due > now or not job.schedule:
            return job
        due = self.times.after(job.schedule, job.zone, now)
        state = job.state if due is not None else "ended"
        return replace(job, next_due=due or 0.0, wake=due or 0.0, state=state)

    async def change(self, draft: Draft, *, moved: bool = False) -> bool:
        """Put what the draft says in place of the job's. `moved`: its conversation too."""
        now = await self.means.store.now()

        def apply(job: Job) -> Job:
            same = ["id", "owner", "made", "version"] + ([] if moved else ["conversation"])
            new = replace(draft.job, **{name: getattr(job, name) for name in same})
            return self._ahead(new, now)

        return await self._write(draft.job.id, apply) is not None

    async def pause(self, name: str, why: Reason = "") -> bool:
        """No new runs until it is resumed; False if there is nothing to pause."""

        def apply(job: Job) -> Job | None:
            return replace(job, state="paused", why=why) if job.state == "active" else None

        return await self._write(name, apply) is not None

    async def resume(self, name: str) -> Job | None:
        """Go on with the next due time; those that the pause took are on record as skipped."""
        now = await self.means.store.now()

        def apply(job: Job) -> Job | None:
            if job.state != "paused":
                return None
            return self._ahead(replace(job, state="active", why=""), now)

        before = await self.jobs.get(name)
        skipped: tuple[JobRun, ...] = ()
        if before is not None and before.state == "paused" and 0 < before.next_due <= now:
            count = await asyncio.to_thread(
                self.times.count, before.schedule, before.zone, before.next_due, now
            )
            run = JobRun(
                job=name,
                slot=f"paused-{before.next_due:.0f}",
                due=before.next_due,
                state="skipped",
                reason="paused",
                at=now,
                ended=now,
                count=count,
                version=ambient.new_id(),
            )
            skipped = (run,)
        return await self._write(name, apply, skipped)

    async def remove(self, name: str) -> bool:
        """The job is gone; a run under way comes to its end."""
        for _ in range(MAX_TRIES):
            job = await self.jobs.get(name)
            if job is None:
                return False
            if await self.jobs.commit(job, None, ()):
                self.ring()
                return True
        return False

    async def run_now(self, name: str, key: str) -> bool:
        """One run besides the schedule; the same `key` makes one only."""
        now = await self.means.store.now()
        run = JobRun(
            job=name, slot=f"now-{key}", due=now, state="queued", at=now, version=ambient.new_id()
        )
        return await self._write(name, lambda job: job, (run,)) is not None

    async def call(self, job: Job, slot: str, given: str) -> RunState:
        """One run that a call from outside begins, in the slot of that call; what became of it,
        or of the first call with that slot. Refused if too many wait already."""
        known = await self.jobs.run(job.id, slot)
        if known is not None:
            return known.state
        now, paused = await self.means.store.now(), job.state == "paused"
        waiting = await self.jobs.list_unfinished(job.id)
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
            version=ambient.new_id(),
        )
        if await self._write(job.id, lambda job: job, (run,)) is None:
            raise JobRefused(say("jobs_busy", n=MAX_CALLS))
        return run.state

    async def retry(self, name: str, slot: str) -> bool:
        """Try a run that failed once more, now."""
        run = await self.jobs.run(name, slot)
        if run is None or run.state != "failed" or await self.jobs.get(name) is None:
            return False
        now = await self.means.store.now()
        tried = _add_try(run, Try(at=run.ended, reason=run.reason, text=run.text))
        again = replace(
            run,
            state="queued",
            tries=run.tries + 1,
            at=now,
            ended=0.0,
            tried=tried,
            version=ambient.new_id(),
        )
        done = await self.jobs.advance(run, again)
        self.ring()
        return done

    async def _write(
        self, name: str, change: Callable[[Job], Job | None], runs: tuple[JobRun, ...] = ()
    ) -> Job | None:
        """Change a job as it is now; what it has become, None if it stays as it is."""
        for _ in range(MAX_TRIES):
            job = await self.jobs.get(name)
            after = change(job) if job is not None else None
            if job is None or after is None:
                return None
            after = replace(after, version=ambient.new_id())
            if await self.jobs.commit(job, after, runs):
                self.ring()
                return after
        return None

    # ---- looking -------------------------------------------------------------------------

    async def list_visible(self, asker: Asker) -> tuple[Job, ...]:
        """The jobs that `asker` may manage from here: own ones, for admins all of this
        conversation. In a group nothing is shown of what belongs elsewhere."""
        found: dict[str, Job] = {}
        for account in sorted(asker.accounts | {asker.sender.key}):
            found |= {job.id: job for job in await self.jobs.list_jobs(account)}
        if asker.role == "admin":
            here = asker.conversation.id
            every = await self.jobs.list_jobs()
            found |= {job.id: job for job in every if job.conversation == here}
        if not asker.conversation.private:
            here = asker.conversation.id
            found = {name: job for name, job in found.items() if job.conversation == here}
        return tuple(sorted(found.values(), key=lambda job: (job.made, job.id)))

    def next_times(self, job: Job) -> tuple[float, ...]:
        """Its next three due times."""
        if job.state != "active" or not job.next_due:
            return ()
        return (job.next_due, *self.drafting.times(job.schedule, job.zone, job.next_due, 2))

    # ---- ends ----------------------------------------------------------------------------

    async def settle(self, run: JobRun) -> bool:
        """Put down what became of a run that was fired; whether its turn has begun."""
        turn = await self.means.store.turn(run.turn)
        if turn is None:
            if await self.means.store.now() - run.at > NOT_BEGUN:
                await self._end(run, RunOutcome(state="failed", reason="not_begun"))
            return False
        if turn.status in ("running", "parked"):
            return True  # its journal may be long, and says nothing yet
        end = outcome(turn, await self.means.store.records(turn.id))
        if end is not None:
            terms = turn.firing.terms if turn.firing is not None else end.terms
            await self._end(run, replace(end, terms=terms))
        return True

    async def settle_turn(self, name: str, slot: str) -> None:
        """As `settle`, for a turn that has just ended."""
        run = await self.jobs.run(name, slot)
        if run is not None and run.state == "fired":
            await self.settle(run)
            self.ring()

    async def refuse(self, name: str, slot: str, why: Reason) -> None:
        """A run that may not begin; its job is paused."""
        run = await self.jobs.run(name, slot)
        if run is not None and run.open:
            await self._end(run, RunOutcome(state="failed", reason=why))
        await self.pause(name, why)

    async def _end(self, run: JobRun, end: RunOutcome) -> None:
        now, job = await self.means.store.now(), await self.jobs.get(run.job)
        spent = run.cost + end.cost
        tries_left = run.tries < len(RETRIES) and job is not None and job.state != "paused"
        if end.again and tries_left:  # also of one that was due once, and has ended
            wake = now + RETRIES[run.tries]
            tried = _add_try(run, Try(at=now, reason=end.reason, text=end.text))
            after = replace(
                run,
                state="retrying",
                reason=end.reason,
                tries=run.tries + 1,
                wake=wake,
                text=end.text,
                cost=spent,
                tried=tried,
            )
        else:
            given = run.given if end.state == "failed" else ""  # it may be tried again
            after = replace(
                run,
                state=end.state,
                reason=end.reason,
                ended=now,
                wake=0.0,
                text=end.text,
                cost=spent,
                given=given,
            )
        if after.state == "done" and end.terms.deliver and job is not None:
            what = (end.terms, end.report)
            after = replace(after, delivered=await deliver(self.means, self.times, job, run, what))
        if after.state == "failed" and job is not None:
            await self._tell(job, after)
            if end.again:
                await self.pause(job.id, end.reason)
        await self.jobs.advance(run, replace(after, version=ambient.new_id()))
        log.info("run_ended", extra={"job": run.job, "slot": run.slot, "state": after.state})

    async def _tell(self, job: Job, run: JobRun) -> None:
        """Bring the failure to the job's conversation: known there, it is told once."""
        language = job.owner.language
        key: Key = f"jobs_why_{run.reason or 'bug'}"  # type: ignore[assignment]  # keys of texts
        pauses = run.reason == "model" and run.tries and job.state == "active"
        paused = say("jobs_failed_paused", language) if pauses else ""
        text = say(
            "jobs_failed",
            language,
            title=job.title,
            when=self.times.when(run.due, job.zone),
            why=f"{say(key, language)} {run.text}".strip(),
            paused=paused,
        )
        told = JobFailed(
            conversation=read_conversation(job.conversation),
            event=f"failed:{job.id}:{run.slot}:{run.tries}",
            job=job.id,
            slot=run.slot,
            text=text.strip(),
            paused=bool(paused) or run.reason == "no_rights",
            language=language,
        )
        await self.means.accept([told])


def _add_try(run: JobRun, last: Try) -> tuple[Try, ...]:
    """The tries of `run`, with one more that failed."""
    return (*run.tried, replace(last, text=last.text[:MAX_SAID]))[-MAX_KEPT:]
