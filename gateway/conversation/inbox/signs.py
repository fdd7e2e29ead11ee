"""Signs on a message before there is an answer: received, being worked on."""

import logging
from functools import partial

from agent_core import ambient
from gateway.conversation.services import Services
from gateway.conversation.state import ConversationState
from gateway.conversation.turns import OpenTurn
from gateway.errors import DeliveryError
from gateway.ports import Working

log = logging.getLogger("turnkeeper.signs")

NEXT_SIGN = 4.0
"""Seconds after which a turn is shown again as being worked at: Telegram shows it for 5."""
LOOK_AGAIN = 0.5
"""Seconds until the signs are checked again: whether one must go, or there is room for another."""


def show_work(state: ConversationState, services: Services, open_turn: OpenTurn) -> None:
    """Show that the turn is being worked on, until something of it is shown."""

    def begin() -> None:
        adapter = state.adapter
        if _is_needed(state, open_turn) and isinstance(adapter, Working):
            services.spawn(partial(_show_work, state, services, adapter, open_turn), "working")

    if open_turn.row.firing is None:
        services.first_signs.add(begin)


def _is_needed(state: ConversationState, open_turn: OpenTurn) -> bool:
    return state.active is open_turn and not state.outbox.has_shown(open_turn.id)


async def _show_work(
    state: ConversationState, services: Services, adapter: Working, open_turn: OpenTurn
) -> None:
    message, stands = open_turn.row.message, False
    while _is_needed(state, open_turn):
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
    """Remove the receipt of a message that no longer waits."""
    if isinstance(state.adapter, Working):
        services.spawn(partial(_clear, state, state.adapter, message), "receipt")


async def _clear(state: ConversationState, adapter: Working, message: str) -> None:
    try:
        await adapter.clear_receipt(state.conversation, message)
    except DeliveryError as error:
        log.info("receipt_stays", extra={"why": str(error)})
