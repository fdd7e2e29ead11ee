"""Edits a job by its fields, without the agent: `/jobs edit 2 model=pro`, the command line, HTTP.

Fields that are not given stay as they are, also a pause and the approval of its command.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, TypeAlias

from msgspec.structs import replace

from gateway.jobs_port import Asker, Draft, Job, JobPorts, JobRefused, JobRequest
from gateway.texts import say

JobField = Literal["title", "schedule", "zone", "model", "profile", "tools", "prompt"]
FIELDS: tuple[JobField, ...] = (
    "title",
    "schedule",
    "zone",
    "model",
    "profile",
    "tools",
    "prompt",
)
OWN = ("model", "profile", "tools")
"""Fields that a job may leave to its conversation."""
MAX_LENGTHS: Mapping[str, int] = {"title": 80, "schedule": 200, "prompt": 8_000}
MAX_LENGTH = 200
NONE = "-"
"""The value that clears such a field."""
CheckModel: TypeAlias = Callable[[str, str], Awaitable[str]]
"""Returns the reason why a model cannot be used, in a language; "" if it can."""
_NEXT = re.compile(rf"(?:^|\s)({'|'.join(FIELDS)})=", re.IGNORECASE)


async def accept_model(name: str, language: str) -> str:
    """Accept any model: the default where no provider can be asked."""
    return ""


def read_fields(line: str) -> dict[str, str]:
    """The fields that `line` names, each up to the next one; `prompt` up to its end. Nothing, if
    it begins with other words, or names one twice."""
    fields: dict[str, str] = {}
    rest = line.strip()
    while rest:
        found = _NEXT.match(rest)
        if found is None or found[1].lower() in fields:
            return {}
        name, rest = found[1].lower(), rest[found.end() :]
        following = _NEXT.search(rest) if name != "prompt" else None
        end = following.start() if following is not None else len(rest)
        fields[name], rest = rest[:end].strip(), rest[end:].strip()
    return fields


async def edit_job(
    jobs: JobPorts, job: Job, fields: Mapping[str, str], asker: Asker, check: CheckModel
) -> Job:
    """Change `job` by `fields` for `asker`, who may manage it; return the changed job. Raises
    JobRefused."""
    language = asker.sender.language
    wish = _make_wish(job, fields, language)
    draft = await jobs.drafts.draft(wish, asker, job)
    if wish.model != job.model:
        await check_models(wish.model, language, check)
    if not await jobs.drafts.change(_keep_rest(draft, job), shown=job):
        raise JobRefused(say("jobs_not_so", language, title=job.title))
    return await jobs.store.get(job.id) or job


async def check_models(models: str, language: str, check: CheckModel) -> None:
    """Ask for each of `models`, between commas; raises JobRefused."""
    for name in filter(None, map(str.strip, models.split(","))):
        if why := await check(name, language):
            raise JobRefused(why, "model")


def _make_wish(job: Job, fields: Mapping[str, str], language: str) -> JobRequest:
    known: dict[str, str] = {}
    if not fields:
        raise JobRefused(say("jobs_edit_usage", language))
    for name, value in fields.items():
        if name not in FIELDS:
            raise JobRefused(say("jobs_edit_usage", language), name)
        if len(value) > MAX_LENGTHS.get(name, MAX_LENGTH):
            most = MAX_LENGTHS.get(name, MAX_LENGTH)
            raise JobRefused(say("jobs_edit_long", language, field=name, n=most), name)
        given = value.strip()
        emptied = given in ("", NONE)
        if emptied and name not in (*OWN, "prompt"):
            raise JobRefused(say("jobs_edit_empty", language, field=name), name)
        known[name] = "" if emptied else given
    return replace(job.wish, **known)


def _keep_rest(draft: Draft, old: Job) -> Draft:
    """Return the draft with the fields of the old job that its validation would reset."""
    new = draft.job
    if new.script == old.script:
        new = replace(new, bound=old.bound)
    if (new.schedule, new.zone) == (old.schedule, old.zone):
        due = {"next_due": old.next_due, "wake": old.wake}
        new = replace(new, state=old.state, why=old.why, **due)
    elif old.state == "paused":
        new = replace(new, state=old.state, why=old.why)
    return replace(draft, job=new)
