"""Signs on a message before there is an answer: received, being worked on."""

import logging
from collections.abc import Callable, Coroutine
from functools import partial

from agent_core import ambient
from gateway.conversation.services import Services
from gateway.conversation.state import ConversationState
from gateway.conversation.turns import OpenTurn
from gateway.errors import DeliveryError
from gateway.messages import MessageReceived
from gateway.ports import Working
from gateway.store.rows import InboxRow

log = logging.getLogger("turnkeeper.signs")

NEXT_SIGN = 4.0
"""Seconds after which a turn is shown again as being worked at: Telegram shows it for 5."""
LOOK_AGAIN = 0.5
"""Seconds until the signs are checked again: whether one must go, or there is room for another."""
MAX_RECEIPTS = 4
"""Receipts for one burst of messages."""
RECEIPT_AFTER = 0.7
"""Seconds after which a message that still waits gets its receipt; people expect it within 1."""


def show_work(state: ConversationState, open_turn: OpenTurn) -> None:
    """Show that the turn is being worked on, until something of it is shown."""

    def is_needed() -> bool:
        return state.active is open_turn and not state.outbox.has_shown(open_turn.id)

    async def show(adapter: Working) -> None:
        message = open_turn.row.message
        if await _show_while(is_needed, state, adapter, message):
            await _clear(state, adapter, message)

    if open_turn.row.firing is None:
        _show_soon(state, is_needed, show)


def show_fetching(state: ConversationState, message: str, is_needed: Callable[[], bool]) -> None:
    """Show that the message is being worked on while its files are fetched. The sign stays for its
    turn, which begins then."""

    async def show(adapter: Working) -> None:
        stands = await _show_while(is_needed, state, adapter, message)
        if stands and (state.active is None or state.active.row.message != message):
            await _clear(state, adapter, message)

    _show_soon(state, is_needed, show)


def _show_soon(
    state: ConversationState,
    is_needed: Callable[[], bool],
    show: Callable[[Working], Coroutine[object, object, None]],
) -> None:
    def begin() -> None:
        if is_needed() and isinstance(state.adapter, Working):
            state.services.spawn(partial(show, state.adapter), "working")

    state.services.first_signs.add(begin)


async def _show_while(
    is_needed: Callable[[], bool], state: ConversationState, adapter: Working, message: str
) -> bool:
    """Show it while it is needed. Return True if the sign stays until it is cleared."""
    stands = False
    while is_needed():
        room = stands or state.services.take_sign(state.conversation)
        if room and not stands:
            try:
                stands = await adapter.show_work(state.conversation, message)
            except DeliveryError as error:
                log.info("work_not_shown", extra={"why": str(error)})
                break
        await ambient.wait(LOOK_AGAIN if stands or not room else NEXT_SIGN)
    return stands


def clear_receipt(state: ConversationState, services: Services, message: str) -> None:
    """Remove the receipt of a message that no longer waits."""
    if isinstance(state.adapter, Working):
        services.spawn(partial(_clear, state, state.adapter, message), "receipt")


async def _clear(state: ConversationState, adapter: Working, message: str) -> None:
    try:
        await adapter.clear_receipt(state.conversation, message)
    except DeliveryError as error:
        log.info("receipt_stays", extra={"why": str(error)})


class Receipts:
    """The marks on the waiting messages of one conversation."""

    def __init__(self, state: ConversationState) -> None:
        self._state = state
        self._unmarked: list[InboxRow] = []
        self._marked: dict[int, str] = {}
        """The message that bears a receipt, by waiting row."""

    def add(self, row: InboxRow) -> None:
        """Mark the waiting row's message soon, if it still waits by then."""
        begins = not self._unmarked
        self._unmarked.append(row)
        if begins:
            self._state.services.spawn(self._mark_burst, "receipt")

    def clear(self, seq: int) -> None:
        """Remove the mark of a row that no longer waits."""
        if message := self._marked.pop(seq, ""):
            clear_receipt(self._state, self._state.services, message)

    async def _mark_burst(self) -> None:
        """Mark the first messages and the last of a waiting burst as received, at the chat's
        rate."""
        state = self._state
        pace = state.services.pace(state.conversation)
        await ambient.wait(RECEIPT_AFTER)
        burst, self._unmarked = self._unmarked, []
        if len(burst) > MAX_RECEIPTS:
            burst = [*burst[: MAX_RECEIPTS - 1], burst[-1]]
        for n, row in enumerate(burst):
            due = pace.edit_due() if n else pace.new_due()
            await ambient.wait(max(0.0, due - ambient.monotonic()))
            message = row.inbound
            if not isinstance(message, MessageReceived) or row not in state.queue:
                continue
            if not state.services.take_sign(state.conversation):
                break
            try:
                await state.adapter.receipt(state.conversation, message.message)
            except DeliveryError as error:
                log.info("no_receipt", extra={"why": str(error)})
            pace.note_sent(new=False)
            self._marked[row.seq] = message.message
            if row not in state.queue:  # it was handled meanwhile
                self.clear(row.seq)
