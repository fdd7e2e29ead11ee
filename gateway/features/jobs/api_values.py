"""Converts jobs and runs to the values of the HTTP API and the command line."""

from agent_core import ambient
from gateway.command_texts import drop_marks
from gateway.jobs_port import Job, JobPorts, JobRun
from gateway.shown_jobs import ShownJob, ShownRun
from gateway.texts.runs import describe_due, describe_run


async def present_job(jobs: JobPorts, job: Job, language: str) -> ShownJob:
    """`job` with its next due times and its newest run."""
    runs = await jobs.store.runs(job.id, 1)
    return ShownJob(
        id=job.id,
        title=job.title,
        state=job.state,
        why=job.why,
        schedule=job.schedule,
        words=str(drop_marks(describe_due(jobs.times, job, language, zoned=False))),
        zone=job.zone,
        next=tuple(map(_utc, jobs.book.next_times(job))),
        where=job.conversation,
        owner=job.owner.key,
        prompt=job.prompt,
        script=job.script,
        context_from=job.feeds_on,
        hook=job.hook,
        deliver=job.deliver,
        missed=job.missed,
        overlap=job.overlap,
        jitter=job.jitter,
        spend=job.spend,
        model=job.model,
        profile=job.profile,
        tools=job.tools,
        last=present_run(runs[0], language) if runs else None,
    )


def present_run(run: JobRun, language: str) -> ShownRun:
    """`run` as it is now."""
    return ShownRun(
        slot=run.slot,
        due=_utc(run.due),
        state=run.state,
        reason=run.reason,
        words=describe_run(run, language),
        tries=run.tries,
        tried=run.tried,
        count=run.count,
        cost=run.cost,
        unpriced=run.unpriced,
        delivered=run.delivered,
        text=run.text,
    )


def _utc(moment: float) -> str:
    return f"{ambient.utc(moment):%Y-%m-%dT%H:%M:%SZ}"
