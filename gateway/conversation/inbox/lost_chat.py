"""A chat that the agent may not write in any more: what it works at there is stopped, for it would
cost and reach nobody. The log and the audit have it, and who asked hears of it in private."""

import logging
from functools import partial

from agent_core.journal import Stopped
from gateway.conversation.services import Services
from gateway.errors import StoreFailed
from gateway.feature import Context
from gateway.messages import Conversation, GatewaySaid, read_conversation
from gateway.ports import Summary, person_scope
from gateway.store.rows import TurnRow
from gateway.texts import say

log = logging.getLogger("turnkeeper.lost_chat")

NEWEST = 5
"""Private conversations of an account that are looked at."""


def stop_lost_turn(context: Context, why: str) -> None:
    """Stop the running turn of a chat that was lost, if one runs. A job's goes on: what it finds
    may be wanted elsewhere, and its job is paused."""
    state, open_turn = context.state, context.state.active
    if open_turn is None or open_turn.closed or open_turn.row.firing is not None:
        return
    row, where = open_turn.row, state.conversation
    log.warning("chat_lost", extra={"conversation": where.id, "turn": row.id, "why": why})
    context.services.count("chats_lost")
    state.note_audit(row.sender, "chat_lost", f"{row.id} {why}")
    text = say("chat_lost", row.language)  # nothing of what was said in the one chat
    context.turns.close(open_turn, Stopped(key="stopped", reason="stop", text=text))
    context.services.spawn(partial(_tell, context.services, where, row, text), "lost chat")


async def _tell(services: Services, lost: Conversation, row: TurnRow, text: str) -> None:
    try:
        where = await find_private(services, row.sender, lost)
        if where is not None and services.deliver is not None:
            said = GatewaySaid(conversation=where, event=f"chat_lost:{row.id}", text=text)
            await services.deliver([said])
    except StoreFailed as error:
        log.warning("chat_lost_not_told", extra={"turn": row.id, "why": str(error)})


async def find_private(services: Services, person: str, lost: Conversation) -> Conversation | None:
    """The newest private conversation of the person with the account `person`, by whichever
    account, but for the chat that is lost."""
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
