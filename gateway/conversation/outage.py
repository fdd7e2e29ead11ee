"""A word to people while the store cannot be written: their messages wait at the platform."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial

from gateway.access.access import Access
from gateway.conversation.spawn import Spawn
from gateway.errors import DeliveryError
from gateway.messages import Conversation, Inbound, MessageReceived
from gateway.ports import Adapter
from gateway.texts import Key, say
from gateway.views import Notice

log = logging.getLogger("turnkeeper.outage")


class Outage:
    """Each conversation is told once, as well as can be: nothing of it is kept."""

    def __init__(self, adapters: Mapping[str, Adapter], access: Access, spawn: Spawn) -> None:
        self._adapters = adapters
        self._access = access
        self._spawn = spawn
        self._told: set[str] = set()

    def tell(self, inbounds: Sequence[Inbound]) -> None:
        """These could not be kept. They come again: the platform got no acknowledgement."""
        for inbound in inbounds:
            if not isinstance(inbound, MessageReceived) or not inbound.addressed:
                continue
            where, sender = inbound.conversation, inbound.sender
            known = self._access.role(sender) is not None
            if known and where.id not in self._told:
                self._told.add(where.id)
                self._spawn(partial(self._say, where, sender.language), "outage")

    def tell_delay(self, where: Conversation, language: str) -> None:
        """Work that is under way there cannot be committed: it goes on by itself later."""
        if where.id not in self._told:
            self._told.add(where.id)
            self._spawn(partial(self._say, where, language, "troubled"), "outage")

    def end(self) -> None:
        """Something was kept again."""
        self._told.clear()

    async def _say(self, where: Conversation, language: str, key: Key = "outage") -> None:
        adapter = self._adapters[where.platform]
        if adapter.abilities.reads_views:
            return  # its API has refused the message with a word of its own
        view = Notice(text=say(key, language), tone="error")
        try:
            for payload in adapter.render(view, where):
                await adapter.send(where, payload)
        except DeliveryError as error:
            log.warning("outage_not_told", extra={"why": str(error)})
