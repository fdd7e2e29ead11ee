"""Hands a run's report over to the places that its job names besides its own conversation.

Handing over again is harmless: a chat knows the report by its event, a file is put in its place as
a whole.
"""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from agent_core.errors import ToolFailed
from agent_core.messages import Message, Text, user
from agent_core.tools import paths
from gateway.features.jobs.deps import JobDeps
from gateway.jobs_port import FILE, HERE, Job, JobRun, Timetable
from gateway.messages import JobReported, Terms, read_conversation
from gateway.shown_jobs import Delivery
from gateway.texts import say

NOTE = (
    "[The report of the scheduled job {title!r}, which runs in another chat, was delivered here.]"
)


async def deliver(
    deps: JobDeps, times: Timetable, job: Job, run: JobRun, given: tuple[Terms, str]
) -> tuple[Delivery, ...]:
    """Deliver the text to each target in the run's terms; return the results. A chat that refused
    it before counts as refusing it."""
    terms, text = given
    refused = {one.to: one.why for one in run.delivered}
    done = []
    for place in terms.deliver:
        why = ""
        if place.startswith(FILE):
            folder = deps.workspace(job.conversation)
            why = await asyncio.to_thread(
                _write, folder, (place.removeprefix(FILE), run.turn), text
            )
        elif place != HERE:
            why = await _bring(deps, times, place, (job, run, text))
        done.append(Delivery(to=place, why=why or refused.get(place, "")))
    return tuple(done)


def add_refusal(delivered: tuple[Delivery, ...], place: str, why: str) -> tuple[Delivery, ...]:
    """Add the refusal of a chat to the results of a report's delivery."""
    return (*(one for one in delivered if one.to != place), Delivery(to=place, why=why))


async def _bring(deps: JobDeps, times: Timetable, place: str, what: tuple[Job, JobRun, str]) -> str:
    job, run, text = what
    conversation = read_conversation(place)
    language = job.owner.language
    if conversation.platform not in deps.platforms:
        return say("jobs_no_platform", language, platform=conversation.platform)
    when = times.format_moment(run.due, job.zone)
    report = JobReported(
        conversation=conversation,
        event=f"report:{job.id}:{run.slot}:{run.tries}",
        title=job.title,
        text=text,
        note=say("jobs_due", language, when=when),
        language=language,
        job=job.id,
        slot=run.slot,
        due=run.due,
        when=when,
    )
    await deps.accept([report])
    return ""


def _write(workspace: Path, named: tuple[str, str], text: str) -> str:
    """Write the file into its place; return the reason why not, "" on success. `named`: its name,
    and that of the run, by which leftovers of interrupted attempts are found."""
    name, run = named
    where = workspace / name
    beside = f".{where.name[:80]}.{run}"
    try:
        paths.make(workspace)
        root = Path(os.path.realpath(workspace))
        with paths.folder(workspace, root / Path(name).parent, create=True) as folder:
            with suppress(FileNotFoundError):
                os.unlink(beside, dir_fd=folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(beside, flags, 0o644, dir_fd=folder), "w") as file:
                paths.give(file.fileno(), os.fstat(folder), name.split("/")[0])
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, where.name, src_dir_fd=folder, dst_dir_fd=folder)
    except (OSError, ToolFailed, ValueError) as error:
        return getattr(error, "strerror", "") or str(error)
    return ""


def report_messages(report: JobReported) -> tuple[Message, ...]:
    """Return the messages that a transcript keeps of a delivered report."""
    said = Message(role="assistant", parts=(Text(text=report.text),))
    return user(NOTE.format(title=report.title)), said
