"""Live changes for readers in this process: who watches a conversation hears of its views."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway.live_queue import LiveQueue
from gateway.ports import Live, Shown

MAX_BEHIND = 256


class Feed:
    """Watchers by conversation. An unwatched conversation takes no memory."""

    def __init__(self) -> None:
        self._watchers: dict[str, set[asyncio.Queue[Live | None]]] = {}

    def is_watched(self, conversation: str) -> bool:
        """Return True if somebody watches."""
        return conversation in self._watchers

    def publish(self, conversation: str, live: Live) -> None:
        """Notify the watchers. One that is too far behind is dropped: it asks for the views
        again."""
        for queue in tuple(self._watchers.get(conversation, ())):
            if queue.qsize() < MAX_BEHIND:
                queue.put_nowait(live)
            elif isinstance(live, Shown):
                self._drop(conversation, queue)
                queue.put_nowait(None)

    @asynccontextmanager
    async def watch(
        self, conversation: str, first: Live | None = None
    ) -> AsyncIterator[AsyncIterator[Live]]:
        """Watch changes from now on. `first`: an earlier notification that still holds."""
        queue: asyncio.Queue[Live | None] = LiveQueue()
        if first is not None:
            queue.put_nowait(first)
        self._watchers.setdefault(conversation, set()).add(queue)
        try:
            yield _drain(queue)
        finally:
            self._drop(conversation, queue)

    def _drop(self, conversation: str, queue: asyncio.Queue[Live | None]) -> None:
        watchers = self._watchers.get(conversation)
        if watchers is not None:
            watchers.discard(queue)
            if not watchers:
                del self._watchers[conversation]


async def _drain(queue: asyncio.Queue[Live | None]) -> AsyncIterator[Live]:
    while (live := await queue.get()) is not None:
        yield live
