"""Chats in which the agent may no longer write: their jobs are paused, as they would run and cost
for nobody, and the owners are told in private. The refusal of a report is stored in its run's row.
"""

from msgspec.structs import replace

from agent_core import ambient
from gateway.conversation.inbox.lost_chat import find_private
from gateway.conversation.services import Services
from gateway.feature import Context
from gateway.features.jobs.reports.delivery import add_refusal
from gateway.jobs_port import HERE, Job
from gateway.messages import (
    ChatLost,
    GatewaySaid,
    read_conversation,
)
from gateway.store.rows import Changes, InboxRow, OutboxRow, find_reported
from gateway.texts import say

MAX_TRIES = 3
"""Times that a run's row is written anew where others write it too."""


async def pause_jobs(context: Context, row: InboxRow, lost: ChatLost) -> None:
    """Pause the jobs of a conversation that was lost."""
    services, here = context.services, lost.conversation.id
    jobs = await services.jobs.store.list_jobs() if services.jobs is not None else ()
    for job in jobs:
        if job.conversation == here:
            await _pause(services, job)
    context.state.submit(Changes(done=(row.seq,)))


def note_refusal(context: Context, row: OutboxRow, why: str) -> None:
    """Put down that a chat refused a report; a job that reports only there is paused."""
    services, here = context.services, context.state.conversation.id

    async def note() -> None:
        job, slot = find_reported(row)
        if job:
            await _put_down(services, (job, slot), here, why)
            return
        turn = await services.store.turn(row.turn)
        jobs = services.jobs
        if turn is None or turn.firing is None or jobs is None:
            return
        await _put_down(services, (turn.firing.job, turn.firing.slot), HERE, why)
        known = await jobs.store.get(turn.firing.job)
        if known is not None:
            await _pause(services, known)

    services.spawn(note, "refusal")


async def _put_down(services: Services, named: tuple[str, str], place: str, why: str) -> None:
    """Write into the row of a run (its job and slot) that `place` refused its report."""
    if (jobs := services.jobs) is None:
        return
    for _ in range(MAX_TRIES):
        run = await jobs.store.run(*named)
        if run is None:
            return
        delivered = add_refusal(run.delivered, place, why)
        after = replace(run, delivered=delivered, version=ambient.new_id())
        if await jobs.store.advance(run, after):
            return


async def _pause(services: Services, job: Job) -> None:
    """Pause a job and tell its owner. The message goes first: a stored pause is not told again, and
    a repeated message is recognised by its event."""
    if services.jobs is None or job.state != "active":
        return
    where = await find_private(services, job.owner.key, read_conversation(job.conversation))
    if where is not None and services.deliver is not None:
        text = say("jobs_lost_chat", job.owner.language, title=job.title)
        event = f"chat_gone:{job.id}:{job.version}"
        await services.deliver([GatewaySaid(conversation=where, event=event, text=text)])
    await services.jobs.book.pause(job.id, "chat_gone")
