"""/jobs: lists recurring jobs and changes them."""

from collections.abc import Sequence

from msgspec import Struct

from agent_core.text import parse_number
from gateway.command_texts import take_word
from gateway.feature import Call, Context
from gateway.features.jobs.cards import CardPlace, ask_sure, card, head, order_jobs, redraw_cards
from gateway.features.jobs.lines.adding import add_job
from gateway.features.jobs.lines.editing import edit_job, read_fields
from gateway.features.jobs.runs import identify
from gateway.jobs_port import Job, JobPorts, JobRefused
from gateway.roles import at_least, say_refused
from gateway.store.rows import Changes
from gateway.texts import Key, say
from gateway.texts.runs import (
    describe_delivery,
    describe_means,
    describe_run,
    describe_tries,
    show_moment,
    show_moments,
)
from gateway.views import Notice

MAX_SHOWN = 10
MAX_NAMED = 20
"""Maximum number of jobs that a list shows without a card."""
ACTIONS = ("run", "pause", "resume", "edit", "history", "delete")


async def jobs(call: Call) -> str:
    """The list, or one action: `/jobs pause 2`."""
    context = call.context
    jobs = context.services.jobs
    if jobs is None:
        return say("jobs_off", call.language)
    known = await jobs.book.list_visible(await identify(context, call.command.sender))
    words = call.words
    if call.option == "add":
        return await add_job(call, jobs)
    if call.option == "here" and len(words) == 1:
        return say("jobs_address", call.language, address=context.state.conversation.id)
    if not words:
        if not known:
            return say("jobs_none", call.language)
        await _list(call, jobs, known)
        return ""
    action = call.option
    if len(words) == 1 and 1 <= (n := parse_number(action) or 0) <= len(known):
        await _show_cards(call, jobs, [(n, known[n - 1])])
        return ""
    if action not in ACTIONS or (len(words) > 2 and action != "edit"):
        return say("jobs_usage", call.language)
    numbered, fields = find_fields(call) if action == "edit" else (words[1:], "")
    n = (parse_number(numbered[0]) or 0) if numbered else 1
    if not 1 <= n <= len(known) or (not numbered and len(known) > 1):
        return say("jobs_no_such", call.language)
    job = known[n - 1]
    if fields and not job.of_file:
        return await _edit(call, job, fields)
    if action == "delete" and not job.of_file:
        await _ask(call, job, n)
        return ""
    text = (await act(context, job, action, str(call.seq), call.language)).text
    if views := await redraw_cards(context, job.id):
        context.state.show(Changes(views=views, row=context.state.row))
    return text


def find_fields(call: Call) -> tuple[list[str], str]:
    """Return the number after `edit`, if there is one, and the rest."""
    rest = call.command.arguments.strip()[len("edit") :].strip()
    number, fields = take_word(rest)
    return ([], rest) if "=" in number else ([number] if number else [], fields)


async def _edit(call: Call, job: Job, line: str) -> str:
    """Change the job as the line says; its cards here change along."""
    context, language, jobs = call.context, call.language, call.context.services.jobs
    if jobs is None or not at_least(call.role, "user"):
        return say_refused(call.role, "user", language)
    who = await identify(context, call.command.sender)
    try:
        check = context.services.agent.check_model
        after = await edit_job(jobs, job, read_fields(line), who, check)
    except JobRefused as error:
        return str(error)
    if views := await redraw_cards(context, job.id):
        context.state.show(Changes(views=views, row=context.state.row))
    return describe_change(jobs, after, language)


async def _ask(call: Call, job: Job, n: int) -> None:
    """Ask whether to delete the job: numbers change, and deletion is final."""
    context = call.context
    views = await ask_sure(context, job, CardPlace(seq=call.seq, n=n), call.language)
    context.finish(call.seq, *views)


async def _list(call: Call, jobs: JobPorts, known: tuple[Job, ...]) -> None:
    """Show one card per job, so that each has its buttons; those beyond a number get a line
    each."""
    numbered = order_jobs(known)
    cards = sorted(numbered[:MAX_SHOWN], key=lambda one: one[0])
    await _show_cards(call, jobs, cards, numbered[MAX_SHOWN:])


async def _show_cards(
    call: Call,
    jobs: JobPorts,
    cards: Sequence[tuple[int, Job]],
    rest: Sequence[tuple[int, Job]] = (),
) -> None:
    """Show a card for each of `cards`, jobs with their numbers, and a line for each of `rest`; the
    first of them ends the row."""
    context, language = call.context, call.language
    views = []
    for n, job in cards:
        at = CardPlace(seq=call.seq, n=n)
        made = await card(jobs, job, at, language)
        views.append(context.state.want(*at.view, made, 1, final=True))
    if rest:
        lines = "\n".join(head(jobs, job, n, language) for n, job in rest[:MAX_NAMED])
        text = say("jobs_more", language, lines=lines)
        views.append(context.draw(call.seq, "more", Notice(text=text)))
    context.finish(call.seq, *views)


class Deed(Struct, frozen=True, kw_only=True):
    """The reply to a request; `idle`: it was so already, and nothing changed."""

    text: str
    idle: bool = False


async def _resume(jobs: JobPorts, job: Job, language: str) -> Deed:
    try:
        after = await jobs.book.resume(job.id)
    except JobRefused as error:  # its schedule cannot be read any more
        return Deed(text=str(error))
    if after is None:
        return Deed(text=say("jobs_not_so", language, title=job.title), idle=True)
    if after.is_over:
        return Deed(text=say("jobs_is_over", language, title=job.title))
    times = show_moments(jobs.times, jobs.book.next_times(after), after.zone)
    return Deed(text=say("jobs_is_resumed", language, title=job.title, times=times))


async def act(context: Context, job: Job, action: str, key: str, language: str) -> Deed:
    """Do one thing about `job`. `key`: the same makes a run by hand once."""
    jobs = context.services.jobs
    if jobs is None:
        return Deed(text=say("jobs_off", language))
    done, told = False, say("jobs_not_so", language, title=job.title)
    match action:
        case "run":
            done = await jobs.book.run_now(job.id, key)
            key_of: Key = "jobs_is_running" if done else "jobs_runs_already"
            told = say(key_of, language, title=job.title)
        case "pause":
            done = await jobs.book.pause(job.id)
            told = say("jobs_is_paused", language, title=job.title) if done else told
        case "resume":
            return await _resume(jobs, job, language)
        case "delete" | "edit" if job.of_file:
            return Deed(text=say("jobs_of_file", language, title=job.title))
        case "delete":
            done = await jobs.book.remove(job.id)
            told = say("jobs_is_deleted", language, title=job.title) if done else told
        case "retry":
            done = await jobs.book.retry(job.id, key)
            told = say("jobs_is_retried", language, title=job.title) if done else told
        case "history":
            return Deed(text=await _history(jobs, job, language))
        case "edit":
            return Deed(text=say("jobs_edit_how", language, title=job.title))
        case _:
            return Deed(text=say("unknown_button", language))
    return Deed(text=told, idle=not done)


def describe_change(jobs: JobPorts, job: Job, language: str) -> str:
    """Describe a changed job."""
    times = show_moments(jobs.times, jobs.book.next_times(job), job.zone)
    following = say("jobs_next", language, times=times) if times else ""
    told = say("jobs_is_changed", language, title=job.title)
    return "\n".join(filter(None, (told, describe_means(job, language), following)))


async def _history(jobs: JobPorts, job: Job, language: str) -> str:
    runs = await jobs.store.runs(job.id, MAX_SHOWN)
    if not runs:
        return say("jobs_never", language)
    lines = []
    for run in runs:
        when = show_moment(jobs.times, run.due, job.zone)
        text = say("jobs_run_line", language, when=when, state=describe_run(run, language))
        said = " ".join(run.text.split())[:120] if run.state in ("done", "failed") else ""
        lines.append(f"{text}. {said}".rstrip(". ") if said else text)
        lines += describe_tries(jobs.times, job, run, language)
        lines += filter(None, (describe_delivery(run, language),))
    return "\n".join((f"**{job.title}**", *lines))
