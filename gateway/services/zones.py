"""Time zones of people: chosen, otherwise told by their client; a small document for each
account."""

from typing import Protocol
from zoneinfo import ZoneInfo

from gateway import clock
from gateway.messages import Sender
from gateway.store.reading import read_document

CHOSEN = "zone:"
TOLD = "zonetold:"
KNOWN, KNOWN_FOR = 2_000, 600.0
"""Size of the cache of zones told, and its lifetime in seconds: another replica may learn of
another zone."""


class Documents(Protocol):
    """The part of the directory that is needed."""

    async def get(self, key: str) -> bytes | None: ...
    async def put(self, key: str, body: bytes | None, expected: bytes | None = None) -> bool: ...


class Zones:
    """Zones by sender key."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._told: dict[str, tuple[str, float]] = {}

    async def read_zone(self, accounts: frozenset[str]) -> str:
        """Return the zone of the person with these accounts, "" if unknown."""
        for kind in (CHOSEN, TOLD):
            for account in sorted(accounts):
                body = await self._documents.get(kind + account)
                if body and (zone := read_document(kind + account, body, _read_name)):
                    return zone
        return ""

    async def choose(self, accounts: frozenset[str], zone: str) -> None:
        """Set the zone of all accounts of the person; "" clears it."""
        for account in sorted(accounts):
            await self._documents.put(CHOSEN + account, zone.encode() or None)

    async def learn(self, sender: Sender) -> None:
        """Store the zone that the sender's client tells, if it is a valid one. StoreFailed."""
        key, zone = sender.key, sender.zone
        known, until = self._told.get(key, ("", 0.0))
        if not zone or (known == zone and clock.monotonic() < until):
            return
        if _is_zone(zone) and await self._documents.get(TOLD + key) != zone.encode():
            await self._documents.put(TOLD + key, zone.encode())
        if len(self._told) >= KNOWN:
            self._told.clear()
        self._told[key] = (zone, clock.monotonic() + KNOWN_FOR)


def _read_name(body: bytes) -> str:
    """Return the stored name; ValueError if this machine's table of zones does not have it."""
    if not _is_zone(name := body.decode()):
        raise ValueError(f"unknown zone {name!r}")
    return name


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        return False
    return True
