"""A queue of live changes for one reader, which may be slow or never read."""

import asyncio
from typing import TypeVar

from gateway.ports import Growing

Item = TypeVar("Item")


class LiveQueue(asyncio.Queue[Item]):
    """A queue with one growing text of a reply at most, the newest: each one contains all earlier
    ones, and a reader who is behind would otherwise hold hundreds of copies of a long answer."""

    def _put(self, item: Item) -> None:
        waiting = self._queue  # type: ignore[attr-defined]  # asyncio's own hook and deque
        if isinstance(item, Growing):
            for at in range(len(waiting) - 1, -1, -1):
                known = waiting[at]
                if isinstance(known, Growing) and known.turn == item.turn:
                    waiting[at] = item
                    return
        waiting.append(item)
