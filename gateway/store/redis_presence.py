"""Ensures one living process for each replica name: a key that expires unless its holder is alive.

A killed process leaves its key behind for at most `TTL`; its successor waits for that. A key that
is renewed meanwhile has a living holder.

A server that was promoted or restarted may lack the end of what the one before it had acknowledged.
A process that lived through that knows its own sends; those of others are in doubt.
"""

import logging
from collections.abc import Sequence
from typing import cast

from redis.asyncio.connection import AbstractConnection

from agent_core import ambient
from gateway.errors import StoreFailed
from gateway.store.redis_reads import pairs
from gateway.store.redis_scripts import KEEP, SUCCEED, TEXTS, run
from gateway.store.redis_wire import RedisWire, Reply, exchange

log = logging.getLogger("turnkeeper.store")

TTL = 2_500
"""Milliseconds that a name is held without a renewal."""
EVERY = 0.8
"""Seconds between renewals: two may be lost."""


LINEAGE = "tk:lineage"
"""Hash: the `id` of the server's data, the newest inbox row `seq` when that began, and the replicas
that are `here` since or were (`was`) before."""


class Lineage:
    """The server's data as this process knows it: `id` is one as long as nothing can be lost. Rows
    up to `doubt` may have been answered by another holder that the server has forgotten. `name`:
    this replica's, "" if it is none."""

    def __init__(self, seq: str, name: str = "") -> None:
        """`seq`: the key with the number of the newest inbox row."""
        self.id = ""
        self.doubt = 0
        self.name = name
        self._seq = seq

    async def greet(self, connection: AbstractConnection) -> None:
        """Log in, and look whether the data are still those that were left. A connection never
        leads to another server; RedisError."""
        await connection.on_connect()
        look = (("INFO", "replication"), ("HGETALL", LINEAGE), ("GET", self._seq))
        info, known, seq = _take(await exchange(connection, look))
        lineage = _find_id(cast(bytes, info))
        found = dict(pairs(cast("list[bytes]", known)))
        if found.get(b"id", lineage) != lineage:
            log.warning("redis_succeeded", extra={"before": found[b"id"].decode()})
        if found.get(b"id") != lineage or (self.name and self._here not in found):
            newest = int(cast("bytes | None", seq) or 0)
            note = run(SUCCEED, LINEAGE, lineage, newest, self.name)
            sent = await exchange(connection, (("SCRIPT", "LOAD", TEXTS[SUCCEED]), note))
            found = dict(pairs(cast("list[bytes]", _take(sent)[1])))
        self._compare(lineage.decode(), found)

    @property
    def _here(self) -> bytes:
        return f"here {self.name}".encode()

    def _compare(self, lineage: str, found: dict[bytes, bytes]) -> None:
        if lineage == self.id:
            return
        own = {f"was {self.name}".encode()} if self.id and self.name else set[bytes]()
        others = {one for one in found if one.startswith(b"was ")} - own
        self.id = lineage
        if others:
            self.doubt = int(found[b"seq"])


def _take(replies: Sequence[Reply]) -> Sequence[Reply]:
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return replies


def _find_id(info: bytes) -> bytes:
    """The id of the server's data: another one after each promotion and restart. Constant if the
    server hides it."""
    lines = dict(line.split(b":", 1) for line in info.splitlines() if b":" in line)
    return lines.get(b"master_replid", b"")[:16]


class Presence:
    """The claim of this process on `name`."""

    def __init__(self, wire: RedisWire, name: str) -> None:
        self._wire = wire
        self._name = name
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
            gone = ("HDEL", LINEAGE, f"here {self._name}")
            await self._wire.call(gone, run(KEEP, self._key, self._nonce, 0))
        except StoreFailed as error:
            log.warning("name_not_given_up", extra={"why": str(error)})
