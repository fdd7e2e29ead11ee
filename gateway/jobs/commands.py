"""/jobs: what is done again and again, and what a person does about it."""

from typing import TYPE_CHECKING

from gateway.jobs.port import Job
from gateway.jobs.running import asker
from gateway.jobs.work.words import delivered, due, ran, tried
from gateway.messages import job_token
from gateway.store.rows import Changes
from gateway.texts import Key, say
from gateway.views import Button, ChoiceCard

if TYPE_CHECKING:
    from gateway.commands.call import Call
    from gateway.jobs.book import Book
    from gateway.sessions.session import Session

MOST_SHOWN = 10
ACTIONS = ("run", "pause", "resume", "edit", "history", "delete")


async def jobs(call: "Call") -> str:
    """The list, or one action: `/jobs pause 2`."""
    session, book = call.session, call.session.services.jobs
    if book is None:
        return say("jobs_off", call.language)
    known = await book.seen_by(await asker(session, call.command.sender))
    words = call.words
    if words == ["here"]:
        return say("jobs_address", call.language, address=session.conversation.id)
    if not words:
        if not known:
            return say("jobs_none", call.language)
        await _list(call, book, known)
        return ""
    action = words[0].lower()
    if action not in ACTIONS:
        return say("jobs_usage", call.language)
    n = int(words[1]) if len(words) > 1 and words[1].isdecimal() else 0 if words[1:] else 1
    if not 1 <= n <= len(known) or (not words[1:] and len(known) > 1):
        return say("jobs_no_such", call.language)
    return await act(session, known[n - 1], action, str(call.seq), call.language)


async def _list(call: "Call", book: "Book", known: tuple[Job, ...]) -> None:
    """One card a job, so that each has its buttons; the first of them ends the row."""
    session, language = call.session, call.language
    views = []
    for n, job in enumerate(known[:MOST_SHOWN], 1):
        text = await line(book, job, n, language)
        buttons = tuple(
            Button(label=say(key, language), token=job_token(job.id, action))
            for key, action in _offers(job)
        )
        card = ChoiceCard(question="", text=text, buttons=buttons, language=language)
        views.append(session.want(f"row-{call.seq}", f"job-{n}", card, 1, final=True))
    session.show(Changes(done=(call.seq,), views=tuple(views), row=session.row))


def _offers(job: Job) -> tuple[tuple[Key, str], ...]:
    turn: tuple[Key, str] = ("jobs_pause", "pause")
    if job.state == "paused":
        turn = ("jobs_resume", "resume")
    rest: tuple[tuple[Key, str], ...] = (
        ("jobs_edit", "edit"),
        ("jobs_history", "history"),
        ("jobs_delete", "delete"),
    )
    return (("jobs_run", "run"), *((turn,) if job.state != "ended" else ()), *rest)


async def line(book: "Book", job: Job, n: int, language: str) -> str:
    """A job in a few lines: what, when, how the last run went."""
    state: Key = f"jobs_{job.state}"  # type: ignore[assignment]  # keys of texts
    lines = [
        say(
            "jobs_line",
            language,
            n=n,
            title=job.title,
            words=due(book.times, job, language),
            zone=job.zone,
            state=say(state, language),
        )
    ]
    if times := book.next_times(job):
        lines.append(say("jobs_next", language, times=shown(book, job, times)))
    runs = await book.jobs.runs(job.id, 1)
    if runs:
        when = book.times.when(runs[0].due, job.zone)
        lines.append(say("jobs_last", language, when=when, state=ran(runs[0], language)))
    else:
        lines.append(say("jobs_never", language))
    return "\n".join(lines)


def shown(book: "Book", job: Job, times: tuple[float, ...]) -> str:
    """Times for people, the zone once."""
    return ", ".join(book.times.when(time, job.zone).removesuffix(f" {job.zone}") for time in times)


async def act(session: "Session", job: Job, action: str, key: str, language: str) -> str:
    """Do one thing about `job`; what to tell. `key`: the same makes a run by hand once."""
    book = session.services.jobs
    if book is None:
        return say("jobs_off", language)
    done, told = False, say("jobs_not_so", language, title=job.title)
    match action:
        case "run":
            done = await book.run_now(job.id, key)
            told = say("jobs_is_running", language, title=job.title) if done else told
        case "pause":
            done = await book.pause(job.id)
            told = say("jobs_is_paused", language, title=job.title) if done else told
        case "resume":
            if (after := await book.resume(job.id)) is not None:
                times = shown(book, after, book.next_times(after))
                told = say("jobs_is_resumed", language, title=job.title, times=times)
        case "delete" | "edit" if job.of_file:
            return say("jobs_of_file", language, title=job.title)
        case "delete":
            done = await book.remove(job.id)
            told = say("jobs_is_deleted", language, title=job.title) if done else told
        case "retry":
            done = await book.retry(job.id, key)
            told = say("jobs_is_retried", language, title=job.title) if done else told
        case "history":
            return await _history(book, job, language)
        case "edit":
            return say("jobs_edit_how", language, title=job.title)
        case _:
            return say("unknown_button", language)
    return told


async def _history(book: "Book", job: Job, language: str) -> str:
    runs = await book.jobs.runs(job.id, MOST_SHOWN)
    if not runs:
        return say("jobs_never", language)
    lines = []
    for run in runs:
        when = book.times.when(run.due, job.zone)
        text = say("jobs_run_line", language, when=when, state=ran(run, language))
        said = " ".join(run.text.split())[:120] if run.state in ("done", "failed") else ""
        lines.append(f"{text}. {said}".rstrip(". ") if said else text)
        lines += tried(book.times, job, run, language)
        lines += filter(None, (delivered(run, language),))
    return "\n".join((job.title, *lines))
