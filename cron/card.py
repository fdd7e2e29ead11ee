"""The card of a proposed job: everything that the person confirms."""

from msgspec import Struct

from gateway.command_texts import OwnText
from gateway.jobs_port import Draft, Job, Timetable
from gateway.texts import Key, say
from gateway.texts.runs import (
    describe_due,
    describe_places,
    describe_spending,
    describe_work,
    show_moments,
)


class JobDetails(Struct, frozen=True, kw_only=True):
    """Further facts on the card. `fed`: the title of the job that it feeds on; `day`: its daily
    spending limit in words, "" for none."""

    fed: str
    day: str
    new: bool


def card_of(times: Timetable, draft: Draft, about: JobDetails, language: str) -> str:
    """Describe a new job, or the changes of one."""
    job = draft.job
    when = show_moments(times, draft.times, job.zone)
    following = OwnText(f"\n{say('jobs_next', language, times=when)}" if when else "")
    return say(
        "jobs_card" if about.new else "jobs_card_change",
        language,
        title=job.title,
        words=describe_due(times, job, language),
        times=following,
        where=describe_places(job, language),
        spend=describe_spending(job, about.day, language),
        does=describe_work(job, about.fed, language),
    )


def card_of_action(times: Timetable, job: Job, action: Key, language: str) -> str:
    """Describe an action on a job."""
    return say(
        "jobs_card_remove",
        language,
        what=say(action, language),
        title=job.title,
        words=describe_due(times, job, language),
    )
