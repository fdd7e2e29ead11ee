"""Jobs and runs as the HTTP API and the command line give them out. Vocabulary."""

from datetime import UTC, datetime

from msgspec import Struct

from gateway.jobs.port import Delivery, Job, Run


class ShownJob(Struct, frozen=True, kw_only=True):
    """A job as it is given out; moments are UTC."""

    id: str
    title: str
    state: str
    why: str
    schedule: str
    zone: str
    next: tuple[str, ...]
    where: str
    owner: str
    prompt: str
    script: str
    context_from: str
    hook: str
    deliver: tuple[str, ...]
    missed: str
    overlap: str
    jitter: float
    spend: float


class ShownRun(Struct, frozen=True, kw_only=True):
    """A run as it is given out: what became of it, of its report, and what it cost, apart."""

    slot: str
    due: str
    state: str
    reason: str
    tries: int
    count: int
    cost: float
    delivered: tuple[Delivery, ...]
    text: str


def shown_job(job: Job, times: tuple[float, ...]) -> ShownJob:
    """`job` with its next due times."""
    return ShownJob(
        id=job.id,
        title=job.title,
        state=job.state,
        why=job.why,
        schedule=job.schedule,
        zone=job.zone,
        next=tuple(map(_utc, times)),
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
    )


def shown_run(run: Run) -> ShownRun:
    """`run` as it is now."""
    return ShownRun(
        slot=run.slot,
        due=_utc(run.due),
        state=run.state,
        reason=run.reason,
        tries=run.tries,
        count=run.count,
        cost=run.cost,
        delivered=run.delivered,
        text=run.text,
    )


def _utc(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%SZ}"
