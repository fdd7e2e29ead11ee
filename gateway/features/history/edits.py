"""Edits of answered messages: the answer stays, and a quiet notice offers another one.

The new words wait in the conversation's row, with the turn they are about, until the button is
pressed or something newer begins.
"""

from msgspec.structs import replace

from gateway.feature import Context
from gateway.features.history.undo import busy, last_turn
from gateway.messages import MessageEdited, turn_token
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
    same = (turn.message, turn.sender) == (edit.message, sender.key)
    if not same or not text or len(text) > MAX_EDITED:
        return state.acknowledge(row.seq)
    words = EditedWords(turn=turn.id, text=text)
    if state.row.edited is not None:  # the button exists, and now uses this text
        state.row = replace(state.row, edited=words)
        return context.finish(row.seq)
    retired, language = await state.retire_offer(), sender.language
    state.row = replace(state.row, edited=words)
    again = Button(label=say("turn_again", language), token=turn_token(turn.id, "retry"))
    notice = Notice(text=say("edited_after", language), quiet=True, buttons=(again,))
    return context.finish(row.seq, *retired, context.draw(row.seq, "edited", notice))
