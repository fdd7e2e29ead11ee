"""Commands on the history: /undo, /retry, /resume."""

from typing import Literal

from msgspec.structs import replace

from agent_core import ambient
from agent_core.sandboxes.snapshots import join_names
from agent_core.text import parse_number
from gateway.command_texts import OwnText, drop_marks
from gateway.conversation.quotas import refuse_turn
from gateway.delivery.retire import fold_said, retire_plan
from gateway.feature import Call, Context, Pressed, refuse_words
from gateway.features.history.resume import bring_back, find, name_part
from gateway.features.history.undo import (
    Past,
    busy,
    find_changed_since,
    last_turn,
    put_off,
    restore,
    take_back,
)
from gateway.messages import PluginPress, Sender, plugin_token, turn_token
from gateway.moment_texts import mark_moment
from gateway.store.rows import Changes, HistoryPart, InboxRow
from gateway.texts import Key, say
from gateway.views import Button, ChoiceCard, Notice

RESUME = "resume"
"""The action of the buttons of a list of earlier conversations."""
FOUND = "found"
MAX_LABEL = 40


async def undo(call: Call) -> str:
    """Undo the last turn. Files changed since: `all` restores them too, `keep` does not; otherwise
    it asks."""
    context = call.context
    if call.option not in ("", "all", "keep"):
        return refuse_words(call, 0)
    if busy(context):
        return say("stop_first", call.language)
    past = await last_turn(context, call.command.sender, call.role)
    if isinstance(past, str):
        return say(past, call.language)
    return await take_turn_back(context, past, call.option, (call.seq, call.language))


async def take_turn_back(
    context: Context, past: Past, wish: str, asked: tuple[int, str]
) -> Literal[""]:
    """Undo `past`, or ask about files changed since, unless `wish` decides it. `asked`: the inbox
    row that wants it, and its language."""
    seq, language = asked
    if wish not in ("all", "keep"):
        changed = await put_off(context, asked, find_changed_since(past))
        if changed is None:
            return ""
        if changed:
            await _ask(context, past, changed, asked)
            return ""
    restored = await put_off(context, asked, restore(past, changed_too=wish == "all"))
    if restored is None:
        return ""
    if wish == "keep":
        restored = replace(restored, left=restored.changed, changed=())
    shown = (
        *await context.state.redraw(past.turn.id, "plan", retire_plan("plan_undone")),
        *await context.state.redraw(past.turn.id, "said", fold_said("undone")),
        *await context.state.retire_offer(),
    )
    if shown:  # before the undo: after a commit in between, a crash would undo twice
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
    """Ask the last message again, as edited since: the command's row waits like a message, and its
    turn undoes the last one as it begins."""
    context = call.context
    if busy(context):
        return say("stop_first", call.language)
    past = await last_turn(context, call.command.sender, call.role)
    if isinstance(past, str) or not past.records:
        return say(past if isinstance(past, str) else "nothing_to_undo", call.language)
    if refused := await refuse_turn(context.services, call.command):
        return refused
    command, edited = call.command, context.state.row.edited
    if edited is not None and edited.turn == past.turn.id and not call.words:
        command = replace(command, arguments=edited.text)
    context.state.queue.append(InboxRow(seq=call.seq, at=ambient.now(), inbound=command))
    return ""


async def resume(call: Call) -> str:
    """Look for an earlier conversation, or go on from one of the last list."""
    context, language = call.context, call.language
    sender = call.command.sender
    if len(call.words) == 1 and (n := parse_number(call.words[0])) is not None:
        return await _go_on(call, n)
    found = await find(context, sender, call.command.arguments)
    if not found:
        return say("resume_none", language)
    lines, buttons = list[str](), list[Button]()
    for n, one in enumerate(found, 1):
        day = mark_moment(one.part.at, f"{ambient.utc(one.part.at):%Y-%m-%d}")
        when = f", {day}" if one.part.at else ""
        excerpt = f"\n   {drop_marks(one.excerpt)}" if one.excerpt else ""
        title = drop_marks(one.part.title)
        lines.append(f"{n}. {title}{when}{excerpt}")
        part = name_part(context.state.row.found[n - 1])
        token = plugin_token("history", RESUME, f"{call.seq}.{part}")
        buttons.append(Button(label=_cut(f"{n}. {title}"), token=token))
    key: Key = "resume_list" if call.words else "resume_recent"
    text = say(key, language, found=OwnText("\n".join(lines)))
    card = ChoiceCard(question="", text=text, buttons=tuple(buttons), language=language)
    context.finish(call.seq, context.draw(call.seq, FOUND, card))
    return ""


def _cut(label: str) -> str:
    return label if len(label) <= MAX_LABEL else f"{label[: MAX_LABEL - 1]}…"


async def _go_on(call: Call, number: int) -> str:
    context, found = call.context, call.context.state.row.found
    place = found[number - 1] if 1 <= number <= len(found) else None
    if refused := await _continue_from(context, place, call.command.sender):
        return refused
    title = place.title if place is not None else ""
    context.state.notice(call.seq, say("resumed", call.language, title=title))
    return ""


async def press_found(
    context: Context, row: InboxRow, pressed: Pressed, asked: PluginPress
) -> None:
    """Continue from the part that a button of the last list names; the list is replaced by the
    reply."""
    listed, _, name = asked.argument.partition(".")
    sender, parts = pressed.sender, context.state.row.found if asked.action == RESUME else ()
    place = next((one for one in parts if name_part(one) == name), None)
    refused = await _continue_from(context, place, sender)
    if place is None or refused:
        return context.state.acknowledge(row.seq, pressed.press, refused)
    text = say("resumed", sender.language, title=place.title)
    return await context.replace_list(row, pressed, f"{listed}.{FOUND}", text)


async def _continue_from(context: Context, place: HistoryPart | None, sender: Sender) -> str:
    """Go on from `place`; why not, "" if the next commit does it."""
    if busy(context):
        return say("stop_first", sender.language)
    if place is None or not await bring_back(context, sender, place):
        return say("resume_gone", sender.language)
    return ""
