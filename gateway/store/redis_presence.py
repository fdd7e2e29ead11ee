"""Ensures one living process for each replica name: a key that expires unless its holder is alive.

A killed process leaves its key behind for at most `TTL`; its successor waits for that. A key that
is renewed meanwhile has a living holder.
"""

import logging
from typing import cast

from agent_core import ambient
from gateway.errors import StoreFailed
from gateway.store.redis_scripts import KEEP, run
from gateway.store.redis_wire import RedisWire

log = logging.getLogger("turnkeeper.store")

TTL = 2_500
"""Milliseconds that a name is held without a renewal."""
EVERY = 0.8
"""Seconds between renewals: two may be lost."""


class Presence:
    """The claim of this process on `name`."""

    def __init__(self, wire: RedisWire, name: str) -> None:
        self._wire = wire
        self._key = f"tk:replica:{name}"
        self._nonce = ambient.secret_id()

    async def claim(self) -> bool:
        """Take the name, after at most `TTL` where its holder has ended; False if one lives."""
        claim = ("SET", self._key, self._nonce, "NX", "GET", "PX", TTL)
        before: object = None
        while True:
            held, left = await self._wire.call(claim, ("PTTL", self._key))
            if held is None or held == self._nonce.encode():
                return True
            if before is not None:
                return False  # it was renewed, or another replica was faster
            before = held
            await ambient.wait(max(0, cast(int, left)) / 1_000 + 0.01)

    async def hold(self) -> None:
        """Renew until cancelled. Returns if another process has the name: this one stood still for
        so long that it was taken for dead."""
        failures = 0
        while True:
            await ambient.wait(EVERY)
            try:
                (kept,) = await self._wire.call(run(KEEP, self._key, self._nonce, TTL))
            except StoreFailed as error:
                failures += 1
                if failures == 1:  # an outage may last for hours
                    log.warning("name_not_renewed", extra={"why": str(error)})
                continue
            if not kept:
                return
            if failures:
                log.info("name_renewed_again", extra={"failures": failures})
            failures = 0

    async def give_up(self) -> None:
        """Release the name for the next process at once."""
        try:
            await self._wire.call(run(KEEP, self._key, self._nonce, 0))
        except StoreFailed as error:
            log.warning("name_not_given_up", extra={"why": str(error)})
