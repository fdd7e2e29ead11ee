"""Ends the work of a chat in which the agent may no longer write.

Running turns and everything that waits there for a button or a turn end, as they would cost money
and reach nobody. The log and the audit record it, and each asker is told in private, once. Whoever
notices the loss, it becomes an inbox row of the conversation and so survives a crash. People are
told before anything ends: an ended turn is not told again, and a repeated message is recognised by
its event.
"""

import logging
from collections.abc import Callable, Iterable

from agent_core.journal import Stopped
from gateway.conversation.services import Services
from gateway.conversation.state import ConversationState
from gateway.errors import Unreadable
from gateway.feature import Context
from gateway.messages import (
    ChatLost,
    Conversation,
    GatewaySaid,
    digest,
    read_conversation,
    sender_of,
)
from gateway.ports import Summary, account_scope, channel_scope, person_scope
from gateway.store.rows import Changes, InboxRow, TurnRow
from gateway.texts import say

log = logging.getLogger("turnkeeper.lost_chat")

NEWEST = 5
"""Private conversations of an account that are looked at."""
MAX_LOOKED_AT = 500
"""Newest conversations of a lost channel, or account, that are looked at."""


def _list_turns(state: ConversationState) -> list[TurnRow]:
    """Return the turns that end with the chat. A job's turn continues, as its report may go
    elsewhere; the job itself is paused."""
    return [turn for turn in state.turns.values() if turn.firing is None]


def _list_rows(state: ConversationState) -> list[InboxRow]:
    """Return messages that still wait for a turn."""
    return [row for row in state.queue if sender_of(row.inbound) is not None]


async def report_lost_chat(context: Context, why: str) -> None:
    """Append to the inbox that the chat refuses messages, if there is anything to end; once for the
    same work. StoreFailed."""
    state, deliver = context.state, context.services.deliver
    open_turns = [turn.id for turn in _list_turns(state) if not _is_closed(state, turn)]
    work = sorted((*open_turns, *(str(row.seq) for row in _list_rows(state))))
    if not work or deliver is None:
        return
    event = f"chat_closed:{digest(' '.join(work).encode())}"
    await deliver([ChatLost(conversation=state.conversation, event=event, why=why)])


def _is_closed(state: ConversationState, turn: TurnRow) -> bool:
    open_turn = state.loaded.get(turn.id)
    return open_turn is not None and open_turn.closed


async def end_lost_work(
    context: Context, lost: ChatLost, with_edits: Callable[[int], tuple[int, ...]]
) -> None:
    """Tell the askers in private, then end the turns of the lost chat and what waits there.
    `with_edits` returns an inbox row and those of its edits."""
    state, services = context.state, context.services
    why = lost.why or "the platform says so"
    asked = [(turn.sender, turn.language) for turn in _list_turns(state)]
    senders = filter(None, (sender_of(row.inbound) for row in _list_rows(state)))
    asked += [(sender.key, sender.language) for sender in senders]
    if not asked:
        return
    log.warning("chat_lost", extra={"conversation": state.conversation.id, "why": why})
    services.count("chats_lost")
    await _tell(services, lost, asked)
    for turn in _list_turns(state):  # reread: one may have ended meanwhile
        try:
            open_turn = await context.turns.open(turn.id)
        except Unreadable:
            continue  # this ended it
        if open_turn.closed:
            continue
        state.note_audit(turn.sender, "chat_lost", f"{turn.id} {why}")
        text = say("chat_was_lost", turn.language)  # seen if the agent is let in again
        context.turns.close(open_turn, Stopped(key="stopped", reason="stop", text=text))
    for row in _list_rows(state):
        state.queue.remove(row)
        if (sender := sender_of(row.inbound)) is not None:
            state.note_audit(sender.key, "chat_lost", f"{row.seq} {why}")
        state.submit(Changes(done=with_edits(row.seq)))


async def _tell(services: Services, lost: ChatLost, asked: Iterable[tuple[str, str]]) -> None:
    """Tell each person (account, language) once, whatever they asked in the chat's threads and by
    which account. StoreFailed."""
    if services.deliver is None:
        return
    event = lost.event.removesuffix(f" {lost.conversation.id}")
    told = set[str]()
    for account, language in asked:
        person = min((account, *await services.access.accounts(account)))
        if person in told:
            continue
        told.add(person)
        where = await find_private(services, account, lost.conversation)
        if where is not None:
            name, text = f"chat_lost:{event}:{person}", say("chat_lost", language)
            await services.deliver([GatewaySaid(conversation=where, event=name, text=text)])


async def spread_loss(services: Services, lost: ChatLost, known: Iterable[str]) -> list[ChatLost]:
    """Return one loss for each conversation of the chat that has work or is in `known`. Others get
    none: anybody may remove the bot from a group of which nothing is known. StoreFailed."""
    where, store = lost.conversation, services.store
    grouped = bool(where.channel) and not where.private
    scope = channel_scope(where) if grouped else account_scope(where)
    found = [*await store.recent(scope, MAX_LOOKED_AT), await store.summary(where.id)]
    names = {one.conversation for one in found if one is not None and one.state != "idle"}
    names |= {name for name, _ in await store.work(services.owner)}
    return [
        ChatLost(conversation=read_conversation(name), event=f"{lost.event} {name}", why=lost.why)
        for name in sorted(names | set(known))
        if lost.covers(read_conversation(name))
    ]


async def find_private(services: Services, person: str, lost: Conversation) -> Conversation | None:
    """Return the newest private conversation of the person behind `person`, by any linked account,
    except the lost chat."""
    found = list[Summary]()
    for account in sorted(await services.access.accounts(person)):
        found += await services.store.recent(person_scope(account), NEWEST)
    for one in sorted(found, key=lambda one: -one.at):
        where = read_conversation(one.conversation)
        there = (where.platform, where.account, where.channel)
        elsewhere = there != (lost.platform, lost.account, lost.channel)
        if elsewhere and where.platform in services.adapters:
            return where
    return None
