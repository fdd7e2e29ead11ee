"""Waits until the store works again: who failed because of it goes on then, not after its pause."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress

from agent_core import ambient
from gateway.errors import StoreFailed

PROBE = "probe-large"
PROBE_BYTES = 65_536
"""What little is left of a disk takes a small write, and not the commit that failed."""
FIRST_PAUSE, PROBE_EVERY = 0.5, 5.0
"""Seconds between two probes of a store that fails, at first and at most."""
JUST_NOW = 10.0
"""Seconds in which a failure may still be of an outage that is over: longer than a trip."""

Put = Callable[[str, bytes | None], Awaitable[object]]
Spawn = Callable[[Callable[[], Coroutine[object, object, None]]], None]


class StoreWatch:
    """One probe for all who wait. `spawn` runs it beside them."""

    def __init__(self, put: Put, spawn: Spawn) -> None:
        self._put = put
        self._spawn = spawn
        self._probing = False
        self._over = asyncio.Event()
        """Set once, at the end of the outage or of the process; then there is a new one."""
        self._ended = -JUST_NOW

    async def pause(self, seconds: float) -> bool:
        """Wait, but no longer than an outage of the store lasts; True if one has ended."""
        if ambient.monotonic() - self._ended < JUST_NOW:
            seconds = min(seconds, FIRST_PAUSE)
        over = self._over
        if not self._probing:
            self._probing = True
            self._spawn(self._probe)
        with suppress(TimeoutError):
            async with ambient.limit(seconds):
                await over.wait()
        return over.is_set()

    def release(self) -> None:
        """Nobody waits any longer."""
        over, self._over = self._over, asyncio.Event()
        over.set()

    async def _probe(self) -> None:
        """Write until it works; that a store works that never failed ends no pause."""
        failed, pause = False, FIRST_PAUSE
        try:
            while not await self._is_writable():
                failed = True
                await ambient.wait(pause)
                pause = min(2 * pause, PROBE_EVERY)
        finally:
            self._probing = False
        if failed:
            self._ended = ambient.monotonic()
            self.release()

    async def _is_writable(self) -> bool:
        try:
            await self._put(PROBE, bytes(PROBE_BYTES))
            await self._put(PROBE, None)
        except StoreFailed:
            return False
        return True
