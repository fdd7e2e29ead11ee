"""A run in its conversation: it waits in the queue like a message, has its turn once, and its end
is recorded. Also the texts and buttons of failures."""

import asyncio
from functools import partial

from msgspec.structs import replace

from agent_core.journal import Stopped
from gateway.access.access import Role
from gateway.conversation.turns import OpenTurn
from gateway.errors import StoreFailed
from gateway.feature import Context
from gateway.features.jobs.asker import identify_asker
from gateway.features.jobs.reports.delivery import report_messages
from gateway.jobs_port import OPERATOR, Asker, Job, JobPorts
from gateway.messages import (
    JobFailed,
    JobFired,
    JobReported,
    Sender,
    WebhookCalled,
    job_token,
)
from gateway.roles import at_least
from gateway.store.rows import Changes, InboxRow, TurnRow, name_report
from gateway.texts import Key, say
from gateway.texts.runs import say_failed, show_due
from gateway.views import Button, ChoiceCard, ReportView


async def take(
    context: Context, row: InboxRow, job: JobFired | JobFailed | JobReported | WebhookCalled
) -> None:
    """Handle a job's row: queue a due run, after the end of the run that it replaces; tell a
    failure; show a report from elsewhere."""
    if isinstance(job, JobFailed):
        _tell_failure(context, row, job)
        return
    if isinstance(job, JobReported):
        _show_report(context, row, job)
        return
    if isinstance(job, JobFired) and job.replaces in context.state.turns:
        old = await context.turns.open(job.replaces)
        if not old.closed:
            text = say("jobs_why_overlap", old.row.language)
            context.turns.close(old, Stopped(key="stopped", reason="interrupt", text=text))
    context.state.queue.append(row)


async def begin(context: Context, row: InboxRow, job: JobFired) -> OpenTurn | None:
    """Begin the turn of a run, on the terms that its job has now. Return None, and end the row, for
    one that had its turn already or must not have one."""
    jobs = context.services.jobs
    if job.turn and jobs is not None:
        renewed = await _renew(context, jobs, job)
        if renewed is None:
            context.state.queue.popleft()
            context.state.submit(Changes(done=(row.seq,)))
            return None
        job = renewed
        context.state.queue[0] = replace(row, inbound=job)
    return await context.turns.begin_next(partial(_as_run, context, job))


async def begin_talk(context: Context, row: InboxRow, called: WebhookCalled) -> OpenTurn | None:
    """Begin the turn of a call from outside: the operator's, with the rights of a user."""

    def as_call(turn: TurnRow) -> TurnRow:
        language = context.state.language
        return replace(turn, sender=OPERATOR.key, sender_name=called.name, language=language)

    return await context.turns.begin_next(as_call)


async def _renew(context: Context, jobs: JobPorts, fired: JobFired) -> JobFired | None:
    """Return the run's message by its job as it is now: it may have waited since it was fired. None
    if it must not begin, or not here."""
    run = await jobs.store.run(fired.job, fired.slot)
    known = context.state.turns.get(fired.turn) or await context.services.store.turn(fired.turn)
    if known is not None or run is None or run.state != "fired" or run.turn != fired.turn:
        return None
    job, owner = await jobs.store.get(fired.job), fired.owner
    if job is None:
        await jobs.ends.stop(run, "deleted")
        return None
    if owner is None or owner.key != job.owner.key:  # else with the groups of when it was due
        owner = job.owner
    if job.state == "paused" and not run.by_hand and not run.tries:
        await jobs.ends.stop(run, "paused")
    elif not at_least(await _role(context, owner), "user"):
        await jobs.ends.refuse(job.id, run.slot, "no_rights")
    elif missing := jobs.ends.find_missing(job):
        await jobs.ends.refuse(job.id, run.slot, "no_means", f"{missing}.")
    else:
        renewed = replace(await jobs.prepare(job, run), owner=owner)
        if renewed.conversation == fired.conversation:
            return renewed
        # under another event: an account knows each event once, and this one is known
        await jobs.ends.hand_over(replace(renewed, event=f"{renewed.event}:{job.version}"))
    return None


async def _role(context: Context, owner: Sender) -> Role | None:
    """Return the role of a job's owner; the operator's jobs have a user's rights, and admins decide
    their questions."""
    return "user" if owner.key == OPERATOR.key else await context.services.access.learn(owner)


def _as_run(context: Context, job: JobFired, row: TurnRow) -> TurnRow:
    """The turn `row` as the run's: for the job's owner, under the id that the run has."""
    if job.owner is None or not job.turn:
        return row
    mine = job.owner.key == OPERATOR.key
    role: Role = "user" if mine else context.services.access.role(job.owner) or "viewer"
    return replace(
        row,
        id=job.turn,
        sender=job.owner.key,
        sender_name=job.owner.name or job.owner.id,
        language=job.owner.language,
        role=role,
        text=job.title,
        firing=job.firing,
    )


def note_end(context: Context, row: TurnRow) -> None:
    """Record the end of a job's turn, once its last commit is stored."""
    firing, jobs, last = row.firing, context.services.jobs, context.state.last_commit
    if firing is None or jobs is None:
        return

    async def settle() -> None:
        if last is not None:
            await asyncio.wait([last])
        try:
            await jobs.ends.settle_turn(firing.job, firing.slot)
        except StoreFailed:
            jobs.bell.set()  # the scheduler retries until it can

    context.services.spawn(settle, "settle")


def _tell_failure(context: Context, row: InboxRow, told: JobFailed) -> None:
    """Tell of a failed run, with its buttons."""
    turn: tuple[Key, str] = ("jobs_pause", "pause")
    if told.paused:
        turn = ("jobs_resume", "resume")
    offers: tuple[tuple[Key, str], ...] = (("jobs_retry", "retry"), turn)
    card = ChoiceCard(
        question="",
        text=say_failed(told, told.language) if told.due else told.text,
        buttons=tuple(
            Button(label=say(key, told.language), token=job_token(told.job, action, told.slot))
            for key, action in offers
        ),
        language=told.language,
    )
    context.finish(row.seq, context.draw(row.seq, "card", card))


def _show_report(context: Context, row: InboxRow, job: JobReported) -> None:
    """Show the report; whoever replies to it here talks about it."""
    note = job.note
    if job.due:
        note = say("jobs_due", job.language, when=show_due(job.due, job.when))
    report = ReportView(title=job.title, text=job.text, note=note, language=job.language)
    context.turns.history.add_messages(report_messages(job))
    context.finish(row.seq, context.draw(row.seq, name_report(job.job, job.slot), report))


async def identify(context: Context, sender: Sender) -> Asker:
    """The person as jobs know people."""
    return await identify_asker(context.services.access, context.state.conversation, sender)


async def find_managed(context: Context, sender: Sender, name: str) -> Job | None:
    """The job `name`, if the person may manage it from here."""
    jobs = context.services.jobs
    who = await identify(context, sender)
    if jobs is None or who.role not in ("user", "admin"):
        return None
    return next((job for job in await jobs.book.list_visible(who) if job.id == name), None)
