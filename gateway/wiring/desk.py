"""What the HTTP API may ask, answered from the store, the feed and the access lists."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager

from gateway.access import Role
from gateway.messages import Inbound, MessageReceived, Sender
from gateway.ports import Live, Shown, Summary, Waiting
from gateway.sessions.host import Host


class GatewayDesk:
    """gateway.ports.Desk over the host and what its sessions share."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def accept(self, inbounds: Sequence[Inbound]) -> None:
        """Keep them, then wake their conversations."""
        await self._host.accept(inbounds)

    async def views(self, conversation: str, after: int, limit: int) -> tuple[Shown, ...]:
        """Changed after rev `after`, by rev."""
        return await self._host.services.store.views(conversation, after, limit)

    async def latest(self, conversation: str, limit: int) -> tuple[Shown, ...]:
        """The newest ones by position, oldest first."""
        return await self._host.services.store.views(conversation, 0, limit, latest=True)

    async def waiting(self, conversation: str) -> tuple[Waiting, ...]:
        """Messages that no turn has begun with."""
        rows = await self._host.services.store.arrivals(conversation, 0)
        return tuple(
            Waiting(seq=row.seq, name=said.sender.name, text=said.text, at=row.at)
            for row in rows
            if isinstance(said := row.inbound, MessageReceived)
        )

    async def conversations(self, prefix: str, limit: int) -> tuple[Summary, ...]:
        """Whose address begins with `prefix`, newest first."""
        return await self._host.services.store.conversations(prefix, limit)

    def watch(self, conversation: str) -> AbstractAsyncContextManager[AsyncIterator[Live]]:
        """What changes from now on, in this process."""
        return self._host.services.feed.watch(conversation)

    def person(self, sender: Sender) -> Role | None:
        """As the access lists have it now."""
        return self._host.services.access.role(sender)
