"""Describes a job in words: its schedule, delivery and work, and how a run went."""

from collections.abc import Iterable

from gateway.command_texts import OwnText
from gateway.jobs_port import HERE, Job, JobRun, Timetable
from gateway.messages import JobFailed
from gateway.moment_texts import has_moment, mark_moment
from gateway.texts import Key, say
from gateway.texts.money import describe_cost, dollars


def describe_due(times: Timetable, job: Job, language: str, *, zoned: bool = True) -> OwnText:
    """Describe when it runs: its schedule, its hook, or both. `zoned`: times of day have their
    zone."""
    if not job.schedule:
        return OwnText(say("jobs_at_hook", language, name=job.hook))
    words = OwnText(times.words(job.schedule, job.zone, language))
    if zoned and not has_moment(words):  # times are shown in the reader's time zone
        words = OwnText(say("jobs_in_zone", language, words=words, zone=job.zone))
    if not job.hook:
        return words
    return OwnText(say("jobs_or_hook", language, words=words, name=job.hook))


def describe_places(job: Job, language: str) -> str:
    """Describe where its report goes."""
    return ", ".join(describe_place(one, language) for one in job.deliver or (HERE,))


def describe_place(one: str, language: str) -> str:
    """Describe one delivery target."""
    if one == HERE:
        return say("jobs_here", language)
    return one


def describe_work(job: Job, feeds_on: str, language: str) -> str:
    """Describe its work; `feeds_on`: the title of the job whose report it receives."""
    lines = []
    if job.script:
        lines.append(say("jobs_runs", language, script=job.script))
    if feeds_on:
        lines.append(say("jobs_feeds", language, title=feeds_on))
    if job.prompt:
        lines.append(say("jobs_does", language, prompt=job.prompt))
    if means := describe_means(job, language):
        lines.append(means)
    return "\n".join(lines)


def describe_means(job: Job, language: str) -> str:
    """Describe its own model, profile and tools, "" for none."""
    means = (("model", job.model), ("profile", job.profile), ("tools", job.tools))
    named = ", ".join(f"{name} {value}" for name, value in means if value)
    return say("jobs_with", language, means=named) if named else ""


def describe_spending(job: Job, day: str, language: str) -> str:
    """Describe its spending limits; `day`: the daily limit in words, "" for none."""
    run = say("jobs_run_limit", language, limit=dollars(job.spend)) if job.spend else ""
    return ", ".join(filter(None, (run, day))) or say("jobs_no_limit", language)


def describe_run(run: JobRun, language: str) -> str:
    """Describe how a run went."""
    state: Key = f"jobs_run_{run.state}"  # type: ignore[assignment]  # keys of texts
    text = say(state, language)
    if run.count > 1:
        text += say("jobs_count", language, n=run.count)
    if run.cost:  # /usage explains runs without a known price
        cost = describe_cost(run.cost, run.unpriced, language)
        text = say("jobs_run_cost", language, text=text, cost=cost)
    if run.reason:
        why: Key = f"jobs_why_{run.reason}"  # type: ignore[assignment]  # keys of texts
        text += f". {say(why, language)}"
    return text


def show_moment(times: Timetable, moment: float, zone: str, *, zoned: bool = True) -> OwnText:
    """A moment for people: their own time where a platform can, else that of `zone`, which is
    named if `zoned`."""
    words = times.format_moment(moment, zone)
    return OwnText(mark_moment(moment, words if zoned else words.removesuffix(f" {zone}")))


def show_due(due: float, when: str) -> OwnText:
    """Return `when` as a moment, if `due` is known (not 0)."""
    return OwnText(mark_moment(due, when) if due else when)


def say_failed(told: JobFailed, language: str) -> str:
    """Say that a run failed, and why."""
    paused = say("jobs_failed_paused", language) if told.retried else ""
    when = show_due(told.due, told.when)
    return say(
        "jobs_failed", language, title=told.title, when=when, why=told.why, paused=paused
    ).strip()


def show_moments(times: Timetable, moments: Iterable[float], zone: str) -> OwnText:
    """Moments for people, without their zone."""
    return OwnText(" · ".join(show_moment(times, one, zone, zoned=False) for one in moments))


def describe_tries(times: Timetable, job: Job, run: JobRun, language: str) -> tuple[str, ...]:
    """The tries before the last one, a line each."""
    lines = []
    for one in run.tried:
        why: Key = f"jobs_why_{one.reason or 'bug'}"  # type: ignore[assignment]  # keys of texts
        when = show_moment(times, one.at // 60 * 60, job.zone)
        lines.append(say("jobs_tried", language, when=when, why=say(why, language)))
    return tuple(lines)


def describe_delivery(run: JobRun, language: str) -> str:
    """Describe the delivery of its report beyond its conversation, "" if there is nothing to
    say."""
    there = [describe_place(one.to, language) for one in run.delivered if not one.why]
    lines = [say("jobs_delivered", language, places=", ".join(there))] if there else []
    for one in run.delivered:
        if one.why:
            where = describe_place(one.to, language)
            lines.append(say("jobs_not_delivered", language, place=where, why=one.why))
    return "\n".join(lines)
