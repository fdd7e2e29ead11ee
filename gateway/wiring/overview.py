"""What waits for a person, what runs for them, and their jobs: a page of it, from the store and the
sessions of this process. Only reads, and shows nothing that its person could not see elsewhere."""

from gateway.access.access import Role, refusal
from gateway.approvers import Person
from gateway.conversation.decisions import describe
from gateway.conversation.host import Host
from gateway.conversation.turns import OpenTurn
from gateway.features.jobs.asker import identify_asker
from gateway.features.jobs.cards import line
from gateway.messages import Conversation, Sender, job_token, read_conversation
from gateway.ports import Overview, OverviewEntry, Summary, account_scope, person_scope
from gateway.roles import at_least
from gateway.texts import say
from gateway.views import ApprovalCard, Button, ChoiceCard

RECENT, NEWEST, MOST = 100, 20, 8
"""Conversations that are looked at, the newest of the person's and of the account's; views of each;
entries of a kind."""


async def overview(host: Host, conversation: Conversation, sender: Sender) -> Overview:
    """Of the sender, who looks from `conversation`, a private chat. StoreFailed."""
    role = await host.services.access.learn(sender)
    if not at_least(role, "viewer"):
        return Overview()
    prefix = f"{conversation.platform}:{conversation.account}:"
    person = await host.services.access.person(sender)
    waits: list[OverviewEntry] = []
    for one in await _recent(host, conversation, sender):
        if one.state != "idle" and len(waits) < MOST:
            waits += await _waits(host, one, person, sender.language)
    runs = [
        OverviewEntry(text=session.state.row.title, conversation=address, stops=True)
        for address, session in host.sessions.items()
        if address.startswith(prefix) and _runs_for(session.state.active, sender, role)
    ]
    jobs = await _jobs(host, conversation, sender, role)
    return Overview(waits=tuple(waits[:MOST]), runs=tuple(runs[:MOST]), jobs=jobs)


async def _recent(host: Host, conversation: Conversation, sender: Sender) -> list[Summary]:
    """The newest conversations of the person with this account, then others of the account."""
    scopes = (person_scope(sender.key), account_scope(conversation))
    found = [one for scope in scopes for one in await host.services.store.recent(scope, RECENT)]
    here = account_scope(conversation).name + ":"
    unique = {one.conversation: one for one in found if one.conversation.startswith(here)}
    return list(unique.values())


async def _waits(
    host: Host, summary: Summary, person: Person, language: str
) -> list[OverviewEntry]:
    """The open questions there that the person may decide."""
    store, where = host.services.store, read_conversation(summary.conversation)
    found = []
    for shown in await store.latest(where.id, NEWEST):
        view = shown.view
        if not isinstance(view, ApprovalCard | ChoiceCard) or view.state != "open":
            continue
        asked = await store.find(view.question) if view.question else None
        if asked is None or refusal(asked[1], where.id, where, person) is not None:
            continue
        text = describe(asked[1], language)
        found.append(OverviewEntry(text=text, conversation=where.id, buttons=view.buttons))
    return found


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
    for n, job in enumerate((await jobs.book.list_visible(who))[:MOST], 1):
        turn = ("jobs_resume", "resume") if job.state == "paused" else ("jobs_pause", "pause")
        offered = (("jobs_run", "run"), *((turn,) if job.state != "ended" else ()))
        buttons = tuple(
            Button(label=say(key, sender.language), token=job_token(job.id, action))
            for key, action in offered
        )
        text = await line(jobs, job, n, sender.language)
        entries.append(OverviewEntry(text=text, conversation=conversation.id, buttons=buttons))
    return tuple(entries)
