"""Passes an answer's deltas on without holding the event loop: servers send thousands at once, or
all words in one, and each costs time to redact and to show."""

from collections import deque
from collections.abc import Iterator

from agent_core.ambient import LoopShare
from agent_core.models.port import Delta, OnDelta, Restarted, TextDelta, ThinkingDelta

MAX_PIECE = 1_000
"""Characters of a delta that are passed on at once."""


class PacedDeltas:
    """The deltas of one answer on their way to `show`."""

    def __init__(self, show: OnDelta) -> None:
        self._show = show
        self._waiting: deque[Delta] = deque()
        self._share = LoopShare()

    def add(self, delta: Delta) -> None:
        """Add a delta as a reader finds it."""
        self._waiting.append(delta)

    async def flush(self) -> None:
        """Pass on what was added, and serve others meanwhile."""
        await self._share.offer()
        while self._waiting:
            for piece in _cut(self._waiting.popleft()):
                self._show(piece)
                await self._share.offer()


def _cut(delta: Delta) -> Iterator[Delta]:
    if isinstance(delta, Restarted) or len(delta.text) <= MAX_PIECE:
        yield delta
        return
    kind = TextDelta if isinstance(delta, TextDelta) else ThinkingDelta
    for at in range(0, len(delta.text), MAX_PIECE):
        yield kind(text=delta.text[at : at + MAX_PIECE])
