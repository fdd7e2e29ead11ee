"""The commands about what was said: /undo, /retry, /resume."""

from math import ceil
from typing import TYPE_CHECKING

from agent_core import ambient
from gateway.history.resume import bring_back, find
from gateway.history.undo import busy, last_turn, restore, take_back
from gateway.people.quotas import over_quota
from gateway.plans.again import superseded
from gateway.store.rows import Changes, InboxRow
from gateway.texts import say

if TYPE_CHECKING:
    from gateway.commands.call import Call


async def undo(call: "Call") -> str:
    """Take the last turn back."""
    session = call.session
    if busy(session):
        return say("stop_first", call.language)
    past = await last_turn(session, call.command.sender, call.role)
    if isinstance(past, str):
        return say(past, call.language)
    restored = await restore(past)
    plan = await session.redrawn(past.turn.id, "plan", superseded("plan_undone"))
    if plan:  # before it is taken back: a commit in between would have a crash take back two
        session.show(Changes(views=plan, row=session.row))
    take_back(session, past)
    session.notice(call.seq, say("undone", call.language) + restored.told(call.language))
    return ""


async def retry(call: "Call") -> str:
    """Ask the last message anew: the command's row waits like a message, and its turn takes the
    last one back as it begins."""
    session = call.session
    if busy(session):
        return say("stop_first", call.language)
    past = await last_turn(session, call.command.sender, call.role)
    if isinstance(past, str) or not past.records:
        return say(past if isinstance(past, str) else "nothing_to_undo", call.language)
    if refused := await _over_quota(call):
        return refused
    session.queue.append(InboxRow(seq=call.seq, at=ambient.now(), inbound=call.command))
    return ""


async def _over_quota(call: "Call") -> str:
    """A word where the person may begin no turn now, else ""."""
    services = call.session.services
    most = services.access.policy.turns_per_hour
    if not most or call.role == "admin":
        return ""
    whose = min(await services.access.accounts(call.command.sender.key))
    event = f"{call.session.conversation.id} {call.command.event}"
    wait = await over_quota(services.store, whose, event, most)
    return say("over_quota", call.language, n=most, minutes=ceil(wait / 60)) if wait else ""


async def resume(call: "Call") -> str:
    """Look for an earlier conversation, or go on from one of the last list."""
    session, sender = call.session, call.command.sender
    if call.words and call.words[0].isdecimal() and len(call.words) == 1:
        return await _go_on(call, int(call.words[0]))
    found = await find(session, sender, call.command.arguments)
    if not found:
        return say("resume_none", call.language)
    lines = []
    for n, one in enumerate(found, 1):
        when = f", {ambient.utc(one.part.at):%Y-%m-%d}" if one.part.at else ""
        excerpt = f"\n   {one.excerpt}" if one.excerpt else ""
        lines.append(f"{n}. {one.part.title}{when}{excerpt}")
    key = "resume_list" if call.words else "resume_recent"
    return say(key, call.language, found="\n".join(lines))  # type: ignore[arg-type]  # both are keys


async def _go_on(call: "Call", number: int) -> str:
    session = call.session
    if busy(session):
        return say("stop_first", call.language)
    if not 1 <= number <= len(session.row.found):
        return say("resume_gone", call.language)
    place = session.row.found[number - 1]
    if not await bring_back(session, call.command.sender, place):
        return say("resume_gone", call.language)
    session.notice(call.seq, say("resumed", call.language, title=place.title))
    return ""
