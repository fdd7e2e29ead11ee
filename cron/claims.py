"""Pure rules for claiming due times: missed times and overlapping runs. Nothing is skipped without
a row that says why."""

from datetime import UTC, datetime

from msgspec.structs import replace

from cron.trigger import MissedTimes
from gateway.jobs_port import Job, JobRun
from gateway.shown_jobs import Reason

ON_TIME = 59.0
"""Seconds by which a due time may be late without being missed: a job that is due every minute has
at most one such time."""
MAX_QUEUED = 10
"""Runs of a job that wait for the one before them."""


def slot_of(due: float) -> str:
    """The name of a due time."""
    return f"{datetime.fromtimestamp(due, UTC):%Y-%m-%dT%H:%M:%SZ}"


def claims(
    job: Job, missed: MissedTimes, now: float, unfinished: tuple[JobRun, ...]
) -> tuple[JobRun, ...]:
    """A run for each due time in `missed`. `unfinished`: runs of the job that are not over."""
    wanted = _select_wanted(job, missed.times, now)
    runs: list[JobRun] = []
    if missed.left_out:
        summed = _run(job, missed.last, now, "missed")
        runs.append(replace(summed, count=missed.left_out, text=slot_of(missed.first)))
    busy = list(unfinished)
    for due in missed.times:
        if due not in wanted:
            runs.append(_run(job, due, now, "missed"))
            continue
        run = _apply_overlap(job, _run(job, due, now), busy, late=_is_late(job, due, now))
        if run.replaces:
            busy.clear()
        if run.open:
            busy.append(run)
        runs.append(run)
    return tuple(runs)


def _is_late(job: Job, due: float, now: float) -> bool:
    return now - due - job.jitter > ON_TIME


def _select_wanted(job: Job, times: tuple[float, ...], now: float) -> frozenset[float]:
    """Return the due times to run: all that are on time, and of the missed ones what the job
    says."""
    late = [due for due in times if _is_late(job, due, now)]
    on_time = [due for due in times if not _is_late(job, due, now)]
    match job.missed:
        case "skip":
            return frozenset(on_time)
        case "latest":
            return frozenset(on_time or late[-1:])
        case "all":
            return frozenset((*on_time, *(due for due in late if now - due <= job.window)))


def _apply_overlap(job: Job, run: JobRun, busy: list[JobRun], *, late: bool) -> JobRun:
    """Return `run` as it starts while `busy` are not over. Missed ones that are all to run wait for
    each other, whatever the job says of overlaps."""
    if not busy:
        return run
    waiting = sum(one.state == "queued" for one in busy)
    if (job.overlap == "queue" or late) and waiting < MAX_QUEUED:
        return replace(run, state="queued")
    if job.overlap == "replace":
        return replace(run, replaces=busy[-1].slot)
    return replace(run, state="skipped", reason="overlap", ended=run.at)


def _run(job: Job, due: float, now: float, reason: Reason = "") -> JobRun:
    """The row for one due time; with a `reason` it is skipped."""
    return JobRun(
        job=job.id,
        slot=slot_of(due),
        due=due,
        state="skipped" if reason else "fired",
        reason=reason,
        at=now,
        ended=now if reason else 0.0,
    )
