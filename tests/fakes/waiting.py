"""How tests wait: for a state, never for a time."""

import asyncio
import contextlib
from collections.abc import Callable

PATIENCE = 15.0
"""Seconds that anything may take on a busy machine before a test gives up."""
LOOK_AGAIN = 0.05


async def until(met: Callable[[], object], timeout: float = PATIENCE) -> None:
    """Until `met`, where nothing tells of a change."""
    async with asyncio.timeout(timeout):
        while not met():
            await asyncio.sleep(0.01)


async def wait_until(
    met: Callable[[], object], changed: Callable[[], asyncio.Event], timeout: float = PATIENCE
) -> None:
    """Until `met`, looked at when the event that `changed` gives is set. Also now and then: a state
    may hang on what sets no event, such as a file or another server."""
    async with asyncio.timeout(timeout):
        while not met():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN):
                    await changed().wait()
