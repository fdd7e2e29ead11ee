"""Edits of messages that were answered or used: the answer stays, and a quiet notice offers another
one, or says why the edit changes nothing.

The new words wait in the conversation's row, with the turn they are about, until the button is
pressed or something newer begins.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from gateway.conversation.turns import read_asked, read_told
from gateway.feature import Context
from gateway.features.history.undo import Past, busy, last_turn
from gateway.messages import MessageEdited, MessageReceived, is_forwarded, turn_token
from gateway.roles import at_least
from gateway.store.rows import EditedWords, InboxRow
from gateway.texts import Key, say
from gateway.views import Button, Notice

NEWEST = 10
"""Turns whose messages are known when one of them is edited."""
MAX_EDITED = 20_000
"""Characters of an edited message that are kept; of a longer one nothing is offered."""


async def offer_again(context: Context, row: InboxRow, edit: MessageEdited) -> None:
    """Take up an edit that no waiting and no running message was changed by."""
    state, sender = context.state, edit.sender
    role = context.services.access.role(sender)
    if not at_least(role, "user") or not edit.text.strip():
        return state.acknowledge(row.seq)
    past = await last_turn(context, sender, role or "viewer")
    mine = isinstance(past, Past) and past.records and past.turn.sender == sender.key
    known = state.row.edited
    words = _put_edit(past, edit, known) if isinstance(past, Past) and mine else None
    if edit.command in context.commands:
        meant = context.find_meaning(edit.text, role)
        if words is None or meant is None or busy(context):
            return _tell(context, row, edit, "edited_command")
    if words is not None and len(words.text) <= MAX_EDITED and not busy(context):
        return await _offer(context, row, edit, words)
    if words is not None or await _is_used(context, edit):
        return _tell(context, row, edit, "edited_used")
    return state.acknowledge(row.seq)


async def _offer(context: Context, row: InboxRow, edit: MessageEdited, words: EditedWords) -> None:
    """Offer to answer the words instead."""
    state, language = context.state, edit.sender.language
    if state.row.edited is not None:  # the button exists, and now uses this text
        state.row = replace(state.row, edited=words)
        return context.finish(row.seq)
    retired = await state.retire_offer()
    state.row = replace(state.row, edited=words)
    again = Button(label=say("turn_again", language), token=turn_token(words.turn, "retry"))
    notice = Notice(text=say("edited_after", language), quiet=True, buttons=(again,))
    return context.finish(row.seq, *retired, context.draw(row.seq, "edited", notice))


def _tell(context: Context, row: InboxRow, edit: MessageEdited, key: Key) -> None:
    """Say, once for each message, that its edit changes nothing."""
    state = context.state
    if state.row.told_edit == edit.message:
        return state.acknowledge(row.seq)
    state.row = replace(state.row, told_edit=edit.message)
    notice = Notice(text=say(key, edit.sender.language), quiet=True)
    return context.finish(row.seq, context.draw(row.seq, "edited", notice))


async def _is_used(context: Context, edit: MessageEdited) -> bool:
    """Return True if one of the sender's newest turns began with the message, or was told of it
    while it ran, in other words."""
    store = context.services.store
    ended = await store.newest(context.state.conversation.id, NEWEST)
    for name in dict.fromkeys(row.turn for row in reversed(ended) if row.turn):
        turn = await store.turn(name)
        if turn is not None and turn.sender == edit.sender.key:
            records = await store.records(name)
            asked = {one.message: one.text for one in _list_parts(read_asked(records))}
            if said := (read_told(records, edit.message) or asked.get(edit.message, "")):
                return said.strip() != edit.text.strip()
    return False


def _put_edit(past: Past, edit: MessageEdited, known: EditedWords | None) -> EditedWords | None:
    """Return the words of the turn's message with this edit in place, and those before it; None if
    it is not of that message, or changes no word: platforms tell of other changes too."""
    turn, text = past.turn, edit.text.strip()
    parts = _list_parts(read_asked(past.records))
    known = known if known is not None and known.turn == turn.id else None
    if len(parts) < 2:
        said = known.text if known is not None else "".join(part.text for part in parts)
        mine = turn.message == edit.message and text != said.strip()
        return EditedWords(turn=turn.id, text=text) if mine else None
    edits = dict(known.parts) if known is not None else {}
    told = {part.message: part.text for part in parts} | edits
    if told.get(edit.message, text).strip() == text:
        return None
    edits[edit.message] = text
    said_now = (edits.get(part.message, "" if is_forwarded(part) else part.text) for part in parts)
    whole = "\n".join(filter(None, said_now))
    return EditedWords(turn=turn.id, text=whole, parts=tuple(edits.items()))


def _list_parts(rows: Sequence[InboxRow]) -> list[MessageReceived]:
    return [one.inbound for one in rows if isinstance(one.inbound, MessageReceived)]
