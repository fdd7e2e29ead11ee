"""Settles a run when its turn is over: recorded, retried, reported."""

import logging
from collections.abc import Callable

from msgspec.structs import replace

from agent_core import ambient
from gateway.features.jobs.deps import JobDeps
from gateway.features.jobs.outcomes import RunOutcome, outcome
from gateway.features.jobs.reports.delivery import add_refusal, deliver
from gateway.jobs_port import Job, JobRequest, JobRun, Jobs, JobStore, Timetable
from gateway.messages import JobFailed, JobFired, read_conversation
from gateway.moment_texts import drop_moments
from gateway.shown_jobs import Reason, Try
from gateway.texts import Key, say
from gateway.texts.runs import say_failed

log = logging.getLogger("turnkeeper.jobs")

RETRIES = (300.0, 900.0, 1_800.0)
"""Seconds until a run is retried whose failure may pass."""
NOT_BEGUN = 86_400.0
"""Seconds until a run that never began is given up."""


class RunSettler:
    """gateway.jobs_port.RunEnds. `ring` is called when a run is over."""

    def __init__(
        self,
        jobs: JobStore,
        book: Jobs,
        times: Timetable,
        deps: JobDeps,
        ring: Callable[[], None],
    ) -> None:
        self._jobs = jobs
        self._book = book
        self._times = times
        self._deps = deps
        self._ring = ring

    async def settle(self, run: JobRun) -> bool:
        turn = await self._deps.store.turn(run.turn)
        if turn is None:
            if await self._deps.store.now() - run.at > NOT_BEGUN:
                await self._end(run, RunOutcome(state="failed", reason="not_begun"))
            return False
        if turn.status in ("running", "parked"):
            return True  # its journal may be long, and says nothing yet
        end = outcome(turn, await self._deps.store.records(turn.id))
        if end is not None:
            terms = turn.firing.terms if turn.firing is not None else end.terms
            await self._end(run, replace(end, terms=terms))
        return True

    async def settle_turn(self, name: str, slot: str) -> None:
        run = await self._jobs.run(name, slot)
        if run is not None and run.state == "fired":
            await self.settle(run)
            self._ring()

    async def refuse(self, name: str, slot: str, why: Reason, text: str = "") -> None:
        run = await self._jobs.run(name, slot)
        if run is not None and run.open:
            await self._end(run, RunOutcome(state="failed", reason=why, text=text))
        await self._book.pause(name, why)

    async def stop(self, run: JobRun, why: Reason) -> None:
        now, version = await self._deps.store.now(), ambient.new_id()
        stopped = replace(run, state="stopped", reason=why, ended=now, wake=0.0, version=version)
        await self._jobs.advance(run, stopped)
        self._ring()

    async def hand_over(self, fired: JobFired) -> None:
        await self._deps.accept([fired])

    def find_missing(self, job: Job) -> str:
        if not (job.profile or job.tools):
            return ""
        wish = JobRequest(
            title=job.title, prompt="", schedule="", profile=job.profile, tools=job.tools
        )
        field, _ = self._deps.fits(wish)  # an unavailable model is replaced by others
        return f"{field} {getattr(wish, field)}" if field else ""

    async def _end(self, run: JobRun, end: RunOutcome) -> None:
        now, job = await self._deps.store.now(), await self._jobs.get(run.job)
        spent, unpriced = run.cost + end.cost, run.unpriced + end.unpriced
        tries_left = run.tries < len(RETRIES) and job is not None and job.state != "paused"
        if end.again and tries_left:  # also for a one-time job that has ended
            wake = now + RETRIES[run.tries]
            tried = run.add_try(Try(at=now, reason=end.reason, text=end.text))
            after = replace(
                run,
                state="retrying",
                reason=end.reason,
                tries=run.tries + 1,
                wake=wake,
                text=end.text,
                cost=spent,
                unpriced=unpriced,
                tried=tried,
            )
        else:
            given = run.given if end.state == "failed" else ""  # it may be retried
            after = replace(
                run,
                state=end.state,
                reason=end.reason,
                ended=now,
                wake=0.0,
                text=end.text,
                cost=spent,
                unpriced=unpriced,
                given=given,
            )
        if after.state == "done" and end.terms.deliver and job is not None:
            what = (end.terms, end.report)
            after = replace(after, delivered=await deliver(self._deps, self._times, job, run, what))
        if after.state == "failed" and job is not None:
            await self._tell(job, after)
            if end.again:
                await self._book.pause(job.id, end.reason)
        ended = await self._jobs.advance(run, replace(after, version=ambient.new_id()))
        if not ended and not await self._add_refusals(run, after):
            return  # its end was noticed twice at once, and is on record
        log.info("run_ended", extra={"job": run.job, "slot": run.slot, "state": after.state})

    async def _add_refusals(self, before: JobRun, after: JobRun) -> bool:
        """Record an end that a chat's refusal of the report came before: the run's row says so
        already. Return True unless the row was changed otherwise."""
        known = await self._jobs.run(before.job, before.slot)
        if known is None or replace(known, delivered=before.delivered, version="") != replace(
            before, version=""
        ):
            return False
        delivered = after.delivered
        for one in known.delivered:
            delivered = add_refusal(delivered, one.to, one.why) if one.why else delivered
        return await self._jobs.advance(
            known, replace(after, delivered=delivered, version=ambient.new_id())
        )

    async def _tell(self, job: Job, run: JobRun) -> None:
        """Tell the failure in the job's conversation, once."""
        language = job.owner.language
        key: Key = f"jobs_why_{run.reason or 'bug'}"  # type: ignore[assignment]  # keys of texts
        pauses = run.reason == "model" and run.tries and job.state == "active"
        told = JobFailed(
            conversation=read_conversation(job.conversation),
            event=f"failed:{job.id}:{run.slot}:{run.tries}",
            job=job.id,
            slot=run.slot,
            text="",
            paused=bool(pauses) or run.reason in ("no_rights", "no_means"),
            language=language,
            title=job.title,
            why=f"{say(key, language)} {run.text}".strip(),
            due=run.due,
            when=self._times.format_moment(run.due, job.zone),
            retried=bool(pauses),
        )
        told = replace(told, text=drop_moments(say_failed(told, language)))
        await self._deps.accept([told])
