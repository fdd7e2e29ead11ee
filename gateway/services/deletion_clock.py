"""The clock by which stored content is past its period: one that is set ahead makes nothing old."""

import logging

from agent_core import ambient
from gateway.store.port import Store
from gateway.store.removal.periods import DAY

log = logging.getLogger("turnkeeper.retention")

JUMP = 3_600.0
"""Seconds within which clocks are corrected; one that is set further may be wrong."""


class DeletionClock:
    """The store's clock. Where it jumps ahead, the time goes on from before the jump for a day: as
    long as that somebody may notice and set it right."""

    def __init__(self) -> None:
        self._offset: float | None = None
        self._ahead = self._since = 0.0

    async def read(self, store: Store) -> float:
        """Return the time, seconds since 1970. StoreFailed."""
        now, running = await store.now(), ambient.monotonic()
        jump = 0.0 if self._offset is None else now - running - self._offset
        self._offset = now - running
        if abs(jump) > JUMP:
            log.warning("clock_was_set", extra={"seconds": round(jump)})
            self._ahead, self._since = max(0.0, self._ahead + jump), running
        if running - self._since > DAY:
            self._ahead = 0.0
        return now - self._ahead
