"""Edits of messages that wait, and of those that a turn which waits for a person has heard."""

from collections.abc import Iterable

from msgspec.structs import replace

from gateway.conversation.inbox.reading import put_change
from gateway.feature import Context
from gateway.messages import MessageEdited, MessageReceived
from gateway.roles import at_least
from gateway.store.rows import InboxRow, TurnRow


def reword_waiting(
    context: Context, known: MessageReceived, edit: MessageEdited
) -> MessageReceived | None:
    """Return the waiting message with its new words; None if they are a command that is none."""
    if edit.command not in context.commands:
        return replace(known, text=edit.text, command="")
    meant = context.find_meaning(edit.text, context.services.access.role(edit.sender))
    if meant is None:
        return None
    return replace(known, text=meant.text, command=meant.command)


async def tell_parked(
    context: Context, parked: Iterable[TurnRow], row: InboxRow, edit: MessageEdited
) -> bool:
    """Queue the edit of a message that one of the `parked` turns has heard: it goes on without it.
    Return False if none has."""
    state, role = context.state, context.services.access.role(edit.sender)
    for turn in parked if at_least(role, "user") else ():
        mine = turn.sender == edit.sender.key
        if mine and (await context.turns.open(turn.id)).has_heard(edit.message):
            state.queue.append(put_change(row, state.conversation))
            return True
    return False
