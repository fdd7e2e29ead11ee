"""The commands about what was said: /undo, /retry, /resume."""

from msgspec.structs import replace

from agent_core import ambient
from agent_core.sandboxes.snapshots import join_names
from gateway.conversation.quotas import refuse_turn
from gateway.delivery.retire import fold_said, retire_plan
from gateway.feature import Call
from gateway.features.history.resume import bring_back, find
from gateway.features.history.undo import busy, find_changed_since, last_turn, restore, take_back
from gateway.store.rows import Changes, InboxRow
from gateway.texts import say


async def undo(call: Call) -> str:
    """Take the last turn back; `all` also what was changed since, `keep` not: else it is asked."""
    context = call.context
    if busy(context):
        return say("stop_first", call.language)
    past = await last_turn(context, call.command.sender, call.role)
    if isinstance(past, str):
        return say(past, call.language)
    wish = call.words[0] if call.words else ""
    if wish not in ("all", "keep") and (changed := await find_changed_since(past)):
        return say("undo_asks", call.language, names=join_names(changed))
    restored = await restore(past, changed_too=wish == "all")
    if wish == "keep":
        restored = replace(restored, left=restored.changed, changed=())
    shown = (
        *await context.state.redraw(past.turn.id, "plan", retire_plan("plan_undone")),
        *await context.state.redraw(past.turn.id, "said", fold_said("undone")),
        *await context.state.retire_offer(),
    )
    if shown:  # before it is taken back: a commit in between would have a crash take back two
        context.state.show(Changes(views=shown, row=context.state.row))
    take_back(context, past)
    context.state.notice(call.seq, say("undone", call.language) + restored.describe(call.language))
    return ""


async def retry(call: Call) -> str:
    """Ask the last message anew: the command's row waits like a message, and its turn takes the
    last one back as it begins."""
    context = call.context
    if busy(context):
        return say("stop_first", call.language)
    past = await last_turn(context, call.command.sender, call.role)
    if isinstance(past, str) or not past.records:
        return say(past if isinstance(past, str) else "nothing_to_undo", call.language)
    if refused := await refuse_turn(context.services, call.command):
        return refused
    context.state.queue.append(InboxRow(seq=call.seq, at=ambient.now(), inbound=call.command))
    return ""


async def resume(call: Call) -> str:
    """Look for an earlier conversation, or go on from one of the last list."""
    context = call.context
    sender = call.command.sender
    if call.words and call.words[0].isdecimal() and len(call.words) == 1:
        return await _go_on(call, int(call.words[0]))
    found = await find(context, sender, call.command.arguments)
    if not found:
        return say("resume_none", call.language)
    lines = []
    for n, one in enumerate(found, 1):
        when = f", {ambient.utc(one.part.at):%Y-%m-%d}" if one.part.at else ""
        excerpt = f"\n   {one.excerpt}" if one.excerpt else ""
        lines.append(f"{n}. {one.part.title}{when}{excerpt}")
    key = "resume_list" if call.words else "resume_recent"
    return say(key, call.language, found="\n".join(lines))  # type: ignore[arg-type]  # both are keys


async def _go_on(call: Call, number: int) -> str:
    context = call.context
    if busy(context):
        return say("stop_first", call.language)
    if not 1 <= number <= len(context.state.row.found):
        return say("resume_gone", call.language)
    place = context.state.row.found[number - 1]
    if not await bring_back(context, call.command.sender, place):
        return say("resume_gone", call.language)
    context.state.notice(call.seq, say("resumed", call.language, title=place.title))
    return ""
