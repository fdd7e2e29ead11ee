"""Edits of answered messages: the answer stays, and a quiet notice offers another one.

The new words wait in the conversation's row, with the turn they are about, until the button is
pressed or something newer begins.
"""

from msgspec.structs import replace

from gateway.conversation.inbox.parts import is_forwarded
from gateway.conversation.turns import read_inbound
from gateway.feature import Context
from gateway.features.history.undo import Past, busy, last_turn
from gateway.messages import MessageEdited, MessageReceived, turn_token
from gateway.store.rows import EditedWords, InboxRow
from gateway.texts import say
from gateway.views import Button, Notice

MAX_EDITED = 20_000
"""Characters of an edited message that are kept; of a longer one nothing is offered."""


async def offer_again(context: Context, row: InboxRow, edit: MessageEdited) -> None:
    """Take up an edit that no waiting and no running message was changed by."""
    state, sender, text = context.state, edit.sender, edit.text.strip()
    role = context.services.access.role(sender) or "viewer"
    past = None if busy(context) else await last_turn(context, sender, role)
    if past is None or isinstance(past, str) or not past.records:
        return state.acknowledge(row.seq)
    turn = past.turn
    words = _put_edit(past, edit.message, text, state.row.edited)
    whole = words is not None and len(words.text) <= MAX_EDITED
    if words is None or turn.sender != sender.key or not text or not whole:
        return state.acknowledge(row.seq)
    if state.row.edited is not None:  # the button exists, and now uses this text
        state.row = replace(state.row, edited=words)
        return context.finish(row.seq)
    retired, language = await state.retire_offer(), sender.language
    state.row = replace(state.row, edited=words)
    again = Button(label=say("turn_again", language), token=turn_token(turn.id, "retry"))
    notice = Notice(text=say("edited_after", language), quiet=True, buttons=(again,))
    return context.finish(row.seq, *retired, context.draw(row.seq, "edited", notice))


def _put_edit(past: Past, message: str, text: str, known: EditedWords | None) -> EditedWords | None:
    """Return the words of the turn's message with this edit in place, and those before it; None if
    it is not of that message."""
    turn, rows = past.turn, read_inbound(past.records)
    parts = [one.inbound for one in rows if isinstance(one.inbound, MessageReceived)]
    if len(parts) < 2:
        return EditedWords(turn=turn.id, text=text) if turn.message == message else None
    if message not in (part.message for part in parts):
        return None
    edits = dict(known.parts) if known is not None and known.turn == turn.id else {}
    edits[message] = text
    said = (edits.get(part.message, "" if is_forwarded(part) else part.text) for part in parts)
    whole = "\n".join(filter(None, said))
    return EditedWords(turn=turn.id, text=whole, parts=tuple(edits.items()))
