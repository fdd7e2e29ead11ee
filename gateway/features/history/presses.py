"""Buttons of a finished turn: ask again, continue where it was cut short, or undo it with its
files.

A press waits in the queue as /retry or a message until its turn begins: one commit begins the turn
and ends the press's row, so that a crash leaves the press to do, or done. From then on its card
offers nothing.
"""

from msgspec.structs import replace

from gateway.access.access import say_not_yours
from gateway.conversation.quotas import refuse_turn
from gateway.feature import Context, Pressed
from gateway.features.history.commands import take_turn_back
from gateway.features.history.undo import busy, last_turn
from gateway.messages import CommandGiven, MessageReceived, TurnPress, dedupe_keys
from gateway.store.rows import InboxRow
from gateway.texts import say

RESTORES = {"restore": "", "restore-all": "all", "restore-keep": "keep"}
"""Actions that undo a turn, with the argument that /undo would get."""


async def press(context: Context, row: InboxRow, pressed: Pressed, asked: TurnPress) -> None:
    """Carry it out once, for who may act for the person of the turn. Words that came with
    `retry`, or with an edit of the message, are asked in place of the old ones."""
    sender, state = pressed.sender, context.state
    role = context.services.access.role(sender) or "viewer"
    past = await last_turn(context, sender, role)
    edited = state.row.edited
    words = edited.text if edited is not None and edited.turn == asked.turn else ""
    wish = _read(pressed, asked, pressed.text or words)
    bears = state.row.offered is not None and state.row.offered[0] == asked.turn
    if past == "not_yours" and bears:
        turn = await context.services.store.turn(asked.turn)
        owner = turn.sender if turn is not None else ""
        word = say_not_yours(owner, state.conversation, sender.language)
        return state.acknowledge(row.seq, pressed.press, word)
    if isinstance(past, str) or past.turn.id != asked.turn or not past.records or busy(context):
        return state.acknowledge(row.seq, pressed.press, say("turn_over", sender.language))
    if (answer := RESTORES.get(asked.action)) is not None:
        await take_turn_back(context, past, answer, (row.seq, sender.language))
        return state.tell(pressed.press, "")
    if wish is None:
        return state.acknowledge(row.seq, pressed.press, say("turn_over", sender.language))
    if why := await refuse_turn(context.services, wish):
        return state.acknowledge(row.seq, pressed.press, why)
    state.queue.append(replace(row, inbound=wish))
    state.tell(pressed.press, "")
    return None


def _read(pressed: Pressed, asked: TurnPress, words: str) -> CommandGiven | MessageReceived | None:
    """Return the command or message that the button stands for, with other `words`; None for a
    button of another version."""
    where, sender, event = pressed.conversation, pressed.sender, dedupe_keys(pressed)[0]
    if asked.action == "retry":
        return CommandGiven(
            conversation=where,
            sender=sender,
            event=event,
            message="",
            name="retry",
            arguments=words,
        )
    if asked.action == "continue":
        text = say("turn_go_on", sender.language)
        return MessageReceived(
            conversation=where, sender=sender, event=event, message="", text=text
        )
    return None
