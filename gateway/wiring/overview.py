"""The overview of a person: waiting questions, running work, and jobs, from the store and the
sessions of this process.

Read-only; shows nothing that its person could not see elsewhere.
"""

from gateway.access.access import Role
from gateway.conversation.decisions import summarize
from gateway.conversation.host import Host
from gateway.conversation.turns import OpenTurn
from gateway.features.approvals.waiting import list_waiting
from gateway.features.jobs.asker import identify_asker
from gateway.features.jobs.cards import line, order_jobs
from gateway.messages import Conversation, Sender, job_token
from gateway.ports import Overview, OverviewEntry, account_scope
from gateway.roles import at_least
from gateway.texts import say
from gateway.views import Button

MOST = 8
"""Entries of a kind."""


async def overview(host: Host, conversation: Conversation, sender: Sender) -> Overview:
    """Return the overview of the sender, who looks from `conversation`, a private chat.
    StoreFailed."""
    role = await host.services.access.learn(sender)
    if host.services.access.is_kept_out_unplaced(sender):
        return Overview(note=say("profile_unread", sender.language))
    if not at_least(role, "viewer"):
        return Overview()
    prefix = f"{conversation.platform}:{conversation.account}:"
    person = await host.services.access.person(sender)
    asked = await list_waiting(host.services, person, (account_scope(conversation),), MOST)
    waits = [
        OverviewEntry(
            text=summarize(one.question, sender.language, host.services.find_redactions()),
            conversation=one.conversation,
            buttons=one.buttons,
        )
        for one in asked
        if one.conversation.startswith(prefix) and one.buttons
    ]
    runs = [
        OverviewEntry(text=session.state.row.title, conversation=address, stops=True)
        for address, session in host.sessions.items()
        if address.startswith(prefix) and _runs_for(session.state.active, sender, role)
    ]
    jobs = await _jobs(host, conversation, sender, role)
    return Overview(waits=tuple(waits), runs=tuple(runs[:MOST]), jobs=jobs)


def _runs_for(active: OpenTurn | None, sender: Sender, role: Role | None) -> bool:
    """A turn runs that the sender may stop."""
    return active is not None and (active.row.sender == sender.key or role == "admin")


async def _jobs(
    host: Host, conversation: Conversation, sender: Sender, role: Role | None
) -> tuple[OverviewEntry, ...]:
    jobs, access = host.services.jobs, host.services.access
    if jobs is None or not at_least(role, "user"):
        return ()
    who = await identify_asker(access, conversation, sender)
    entries = []
    for n, job in order_jobs(await jobs.book.list_visible(who))[:MOST]:
        turn = ("jobs_resume", "resume") if job.state == "paused" else ("jobs_pause", "pause")
        offered = (("jobs_run", "run"), *(() if job.is_over else (turn,)))
        buttons = tuple(
            Button(label=say(key, sender.language), token=job_token(job.id, action))
            for key, action in offered
        )
        text = await line(jobs, job, n, sender.language)
        entries.append(OverviewEntry(text=text, conversation=conversation.id, buttons=buttons))
    return tuple(entries)
