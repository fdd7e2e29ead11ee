"""The commands about what was said: /undo, /retry, /resume."""

from typing import Literal

from msgspec.structs import replace

from agent_core import ambient
from agent_core.sandboxes.snapshots import join_names
from gateway.command_texts import OwnText, drop_marks
from gateway.conversation.quotas import refuse_turn
from gateway.delivery.retire import fold_said, retire_plan
from gateway.feature import Call, Context
from gateway.features.history.resume import bring_back, find
from gateway.features.history.undo import (
    Past,
    busy,
    find_changed_since,
    last_turn,
    restore,
    take_back,
)
from gateway.messages import turn_token
from gateway.moment_texts import mark_moment
from gateway.store.rows import Changes, InboxRow
from gateway.texts import Key, say
from gateway.views import Button, Notice


async def undo(call: Call) -> str:
    """Take the last turn back; `all` also what was changed since, `keep` not: else it is asked."""
    context = call.context
    if busy(context):
        return say("stop_first", call.language)
    past = await last_turn(context, call.command.sender, call.role)
    if isinstance(past, str):
        return say(past, call.language)
    wish = call.words[0] if call.words else ""
    return await take_turn_back(context, past, wish, (call.seq, call.language))


async def take_turn_back(
    context: Context, past: Past, wish: str, asked: tuple[int, str]
) -> Literal[""]:
    """Take `past` back, or ask about what was changed since, unless `wish` says it. `asked`: the
    inbox row that wants it, and its language."""
    seq, language = asked
    if wish not in ("all", "keep") and (changed := await find_changed_since(past)):
        await _ask(context, past, changed, asked)
        return ""
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
    context.state.notice(seq, say("undone", language) + restored.describe(language))
    return ""


async def _ask(
    context: Context, past: Past, changed: tuple[str, ...], asked: tuple[int, str]
) -> None:
    """Name the files that something else changed since, with a button for each answer."""
    seq, language = asked
    offers: tuple[tuple[Key, str], ...]
    offers = (("restore_all", "restore-all"), ("restore_keep", "restore-keep"))
    buttons = tuple(
        Button(label=say(key, language), token=turn_token(past.turn.id, action))
        for key, action in offers
    )
    text = say("undo_asks", language, names=join_names(changed))
    retired = await context.state.retire_offer()
    asks = context.draw(seq, "asks", Notice(text=text, buttons=buttons))
    context.finish(seq, *retired, asks)


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
        day = mark_moment(one.part.at, f"{ambient.utc(one.part.at):%Y-%m-%d}")
        when = f", {day}" if one.part.at else ""
        excerpt = f"\n   {drop_marks(one.excerpt)}" if one.excerpt else ""
        lines.append(f"{n}. {drop_marks(one.part.title)}{when}{excerpt}")
    key = "resume_list" if call.words else "resume_recent"
    return say(key, call.language, found=OwnText("\n".join(lines)))  # type: ignore[arg-type]  # both are keys


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
