"""What is seen of a message before there is an answer: that it waits, that it is worked at."""

import logging
from functools import partial

from agent_core import ambient
from gateway.conversation.services import Services
from gateway.conversation.state import ConversationState
from gateway.conversation.turns import OpenTurn
from gateway.errors import DeliveryError
from gateway.ports import Working

log = logging.getLogger("turnkeeper.signs")

FIRST_SIGN, NEXT_SIGN = 0.4, 4.0
"""Seconds after which a turn without a view is shown as being worked at, and after which again:
people expect it within 1, Telegram shows it for 5."""
LOOK_AGAIN = 0.5
"""Seconds after which it is looked whether a sign that stands has to go, or whether there is room
for one."""


def show_work(state: ConversationState, services: Services, open_turn: OpenTurn) -> None:
    """From now on and until something of the turn is seen, show that it is worked at."""
    adapter = state.adapter
    if isinstance(adapter, Working) and open_turn.row.firing is None:
        services.spawn(partial(_show_work, state, services, adapter, open_turn), "working")


async def _show_work(
    state: ConversationState, services: Services, adapter: Working, open_turn: OpenTurn
) -> None:
    message, stands = open_turn.row.message, False
    await ambient.wait(FIRST_SIGN)
    while state.active is open_turn and not state.outbox.has_shown(open_turn.id):
        room = stands or services.take_sign(state.conversation)
        if room and not stands:
            try:
                stands = await adapter.show_work(state.conversation, message)
            except DeliveryError as error:
                log.info("work_not_shown", extra={"why": str(error)})
                break
        await ambient.wait(LOOK_AGAIN if stands or not room else NEXT_SIGN)
    if stands:
        await _clear(state, adapter, message)


def clear_receipt(state: ConversationState, services: Services, message: str) -> None:
    """Take the receipt of a message away, which waits no more."""
    if isinstance(state.adapter, Working):
        services.spawn(partial(_clear, state, state.adapter, message), "receipt")


async def _clear(state: ConversationState, adapter: Working, message: str) -> None:
    try:
        await adapter.clear_receipt(state.conversation, message)
    except DeliveryError as error:
        log.info("receipt_stays", extra={"why": str(error)})
