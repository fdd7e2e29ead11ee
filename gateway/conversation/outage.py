"""A word to people while the store cannot be written, when their messages wait at the platform, and
when it has lost what it had."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct

from gateway.access.access import Access
from gateway.conversation.spawn import Spawn
from gateway.errors import DeliveryError
from gateway.messages import Conversation, Inbound, MessageReceived
from gateway.ports import Adapter
from gateway.store.rows import AcquiredConversation, TurnRow
from gateway.texts import Key, say
from gateway.views import Notice

log = logging.getLogger("turnkeeper.outage")


class Unfinished(Struct, frozen=True, kw_only=True):
    """The work of a session that ended with its lease. `token`: the lease's; `waits`: a person's
    message or turn was under way."""

    where: Conversation
    language: str
    token: int
    waits: bool


class ForgottenWork:
    """The work that an earlier holder may have done although the store does not know of it."""

    def __init__(self, opened: AcquiredConversation) -> None:
        self._doubt = opened.doubt
        self._waited = any(row.seq <= opened.doubt for row in opened.inbox)
        parked = (turn.id for turn in opened.turns if turn.status == "parked")
        self._parked = frozenset(() if self._waited else parked)
        """Turns that nobody had answered then: what wakes them came later."""
        self._unsent = frozenset(view.turn for view in opened.views)

    def covers(self, turn: str, row: TurnRow | None) -> bool:
        """Return True if views of `turn` may be in the chat; `row`: None if it is no open turn."""
        if not self._doubt or turn in self._parked:
            return False
        if row is not None:
            return any(seq <= self._doubt for seq in row.inbox)
        seq = turn.removeprefix("row-")
        if seq != turn:
            return int(seq) <= self._doubt
        return self._waited or turn in self._unsent  # as a question of another conversation


class Outage:
    """Tells each conversation of an outage once, as far as possible: nothing of it is stored."""

    def __init__(self, adapters: Mapping[str, Adapter], access: Access, spawn: Spawn) -> None:
        self._adapters = adapters
        self._access = access
        self._spawn = spawn
        self._told: set[str] = set()

    def tell(self, inbounds: Sequence[Inbound]) -> None:
        """Tell the senders that their messages could not be stored. They come again, as the
        platform got no acknowledgement."""
        for inbound in inbounds:
            if not isinstance(inbound, MessageReceived) or not inbound.addressed:
                continue
            where, sender = inbound.conversation, inbound.sender
            known = self._access.role(sender) is not None
            if known and where.id not in self._told:
                self._told.add(where.id)
                self._spawn(partial(self._say, where, sender.language), "outage")

    def tell_delay(self, where: Conversation, language: str) -> None:
        """Tell that running work there cannot be committed now and continues by itself later."""
        if where.id not in self._told:
            self._told.add(where.id)
            self._spawn(partial(self._say, where, language, "troubled"), "outage")

    def tell_loss(self, before: Unfinished, opened: AcquiredConversation) -> None:
        """Tell of work that the store has forgotten. Tokens grow, unless it lost newer ones, as a
        promoted copy or an emptied server; no work is done again that may have been done."""
        lost = opened.lease.token <= before.token and not opened.turns and not opened.inbox
        if lost and before.waits:
            self._spawn(partial(self._say, before.where, before.language, "work_lost"), "outage")

    def end(self) -> None:
        """End the outage: the store works again."""
        self._told.clear()

    def tell_text(self, where: Conversation, text: str) -> None:
        """Tell what the conversation itself cannot take."""
        self._spawn(partial(self._show, where, text), "outage")

    async def _say(self, where: Conversation, language: str, key: Key = "outage") -> None:
        await self._show(where, say(key, language))

    async def _show(self, where: Conversation, text: str) -> None:
        adapter = self._adapters[where.platform]
        if adapter.abilities.reads_views:
            return  # its API refused the message with an explanation
        view = Notice(text=text, tone="error")
        try:
            for payload in adapter.render(view, where):
                await adapter.send(where, payload)
        except DeliveryError as error:
            log.warning("outage_not_told", extra={"why": str(error)})
