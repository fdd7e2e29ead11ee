"""`/jobs add tomorrow at nine: water the plants`: a job by one line, without the agent."""

import re

from gateway.feature import Call
from gateway.features.jobs.cards import CardPlace, card
from gateway.features.jobs.lines.editing import check_models
from gateway.features.jobs.runs import identify
from gateway.jobs_port import Job, JobPorts, JobRefused, JobRequest
from gateway.messages import digest
from gateway.roles import at_least, say_refused
from gateway.texts import say

MAX_TITLE = 60
_MEANS = re.compile(r"(model|profile|tools)=(\S+)", re.IGNORECASE)
_BETWEEN = re.compile(r":\s|\n")
"""Matches the separator of schedule and task: a colon and a blank, as times have colons too, or a
line end."""


async def add_job(call: Call, jobs: JobPorts) -> str:
    """Make the job that the line says, and show its card; else why it cannot be."""
    language = call.language
    means, line = _take_means(call.command.arguments.strip()[len("add") :])
    when, what = _divide(line)
    if not when or not what:
        return say("jobs_add_usage", language)
    who = await identify(call.context, call.command.sender)
    if not at_least(call.role, "user"):
        return say_refused(call.role, "user", language)
    name = digest(f"{call.context.state.conversation.id} {call.seq}".encode())
    job = await jobs.store.get(name)  # created before a crash
    if job is None:
        wish = JobRequest(
            title=_make_title(what),
            prompt=what,
            schedule=when,
            model=means.get("model", ""),
            profile=means.get("profile", ""),
            tools=means.get("tools", ""),
        )
        try:
            draft = await jobs.drafts.draft(wish, who)
            await check_models(wish.model, language, call.context.services.agent.check_model)
            job = await jobs.drafts.make(draft, name)
        except JobRefused as error:
            return f"{error} {say('jobs_add_usage', language)}"
    await _show(call, jobs, job, guessed=not await jobs.drafts.has_zone(who))
    return ""


async def _show(call: Call, jobs: JobPorts, job: Job, *, guessed: bool) -> None:
    context = call.context
    known = await jobs.book.list_visible(await identify(context, call.command.sender))
    n = next((n for n, one in enumerate(known, 1) if one.id == job.id), len(known))
    at = CardPlace(seq=call.seq, n=n)
    hint = say("jobs_zone_hint", call.language) if guessed else ""
    made = await card(jobs, job, at, call.language, hint=hint)
    context.finish(call.seq, context.state.want(*at.view, made, 1, final=True))


def _take_means(line: str) -> tuple[dict[str, str], str]:
    """Take `model=…`, `profile=…` and `tools=…` off the line's start; return them and the rest."""
    means: dict[str, str] = {}
    while found := _MEANS.match(line.lstrip()):
        means[found[1].lower()] = found[2]
        line = line.lstrip()[found.end() :]
    return means, line


def _divide(line: str) -> tuple[str, str]:
    """Split into schedule and task, each "" if missing."""
    found = _BETWEEN.search(line)
    return (line[: found.start()].strip(), line[found.end() :].strip()) if found else (line, "")


def _make_title(prompt: str) -> str:
    """Make a title from the first words of the task."""
    line = " ".join(prompt.split())
    if len(line) <= MAX_TITLE:
        return line
    return f"{line[:MAX_TITLE].rsplit(' ', 1)[0].rstrip(' ,;:.')}…"
