"""Clocks that tests move."""

import asyncio

from agent_core import ambient


class Skipping:
    """The machine's clock, moved on by hand; whoever waits is woken by it."""

    def __init__(self) -> None:
        self._real = ambient.SystemClock()
        self.ahead = 0.0
        self._moved = asyncio.Event()

    def now(self) -> float:
        return self._real.now() + self.ahead

    def monotonic(self) -> float:
        return self._real.monotonic() + self.ahead

    async def wait(self, seconds: float) -> None:
        end = self.monotonic() + seconds
        while (left := end - self.monotonic()) > 0:
            try:
                await asyncio.wait_for(self._moved.wait(), left)
            except TimeoutError:
                return

    def skip(self, seconds: float) -> None:
        self.ahead += seconds
        self._moved.set()
        self._moved = asyncio.Event()
