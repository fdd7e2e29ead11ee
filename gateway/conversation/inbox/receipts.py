"""Marks on messages that wait: received, until their turn begins."""

import logging

from agent_core import ambient
from gateway.conversation.inbox.signs import clear_receipt
from gateway.conversation.state import ConversationState
from gateway.errors import DeliveryError
from gateway.messages import MessageReceived
from gateway.store.rows import InboxRow

log = logging.getLogger("turnkeeper.intake")

MAX_RECEIPTS = 4
"""Receipts for one burst of messages."""
RECEIPT_AFTER = 0.7
"""Seconds after which a message that still waits gets its receipt; people expect it within 1."""


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
