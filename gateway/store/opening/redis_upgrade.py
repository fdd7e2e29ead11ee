"""Upgrades an older layout in Redis, while others use it."""

from collections.abc import Awaitable, Callable

from gateway.store.redis_lists import fill
from gateway.store.redis_scripts import RAISE, run
from gateway.store.redis_wire import RedisWire
from gateway.store.version import LAYOUT, check_layout

VERSION = "tk:version"
STEPS: tuple[Callable[[RedisWire], Awaitable[None]], ...] = (fill,)
"""Step `n` makes layout `n + 1`. Several replicas may run it at once, beside older ones."""


async def upgrade(wire: RedisWire, layout: int = LAYOUT) -> None:
    """The layout that this version knows. StoreFailed, also for a newer one."""
    (found,) = await wire.call(("GET", VERSION))
    number = int(found) if isinstance(found, bytes) else 0
    check_layout(number)
    for n in range(number, layout):
        await STEPS[n](wire)
        await wire.call(run(RAISE, VERSION, n + 1))
