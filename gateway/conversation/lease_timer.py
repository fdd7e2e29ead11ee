"""How long a session may act under its lease, whatever becomes of the renewals.

A lease counts from before the call that took or renewed it. Two thirds of its time without a
renewal end the session, while nobody else can own the conversation yet. After a stall of the
process, in which it could not renew, the lease is requested once more first: if nobody has taken
it, the session goes on.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from agent_core import ambient
from gateway.errors import StoreFailed


class LeaseTimer:
    """The lease timer of one session. `renew` asks the store for the lease again and returns
    whether it is still ours."""

    def __init__(self, began: float, ttl: float, renew: Callable[[], Awaitable[bool]]) -> None:
        self._ttl = ttl
        self._renew = renew
        self._news = asyncio.Event()
        self._ended = asyncio.Event()
        self.deadline = began + ttl
        """`ambient.monotonic()` at which the lease runs out."""

    def note_renewal(self, began: float) -> None:
        """The lease was renewed, by a call that began at `ambient.monotonic()` = `began`."""
        self.deadline = began + self._ttl
        self._news.set()

    def end(self) -> None:
        """Stop the timer: the session acts no more."""
        self._ended.set()
        self._news.set()

    async def permit(self) -> None:
        """Wait until something may begin, or the session has ended. Called before each call, since
        after a stall no timer may have fired yet."""
        while not self._ended.is_set() and self._acts_for() <= 0:
            self._news.clear()
            await self._news.wait()

    async def watch(self) -> bool:
        """Wait until the session has ended; False if its lease could not be renewed in time."""
        while not self._ended.is_set():
            left = self._acts_for()
            if left > 0:
                with suppress(TimeoutError):
                    async with ambient.limit(left):
                        await self._ended.wait()
            elif not await self._renew_late():
                return False
        return True

    def _acts_for(self) -> float:
        return self.deadline - self._ttl / 3 - ambient.monotonic()

    async def _renew_late(self) -> bool:
        began, held = ambient.monotonic(), False
        with suppress(StoreFailed, TimeoutError):
            async with ambient.limit(self._ttl / 6):
                held = await self._renew()
        if held:
            self.note_renewal(began)
        return held
