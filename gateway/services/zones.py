"""The time zones of people: the one that somebody chose, else the one that their client tells. A
small document for each account."""

from typing import Protocol
from zoneinfo import ZoneInfo

from gateway import clock
from gateway.messages import Sender

CHOSEN = "zone:"
TOLD = "zonetold:"
KNOWN, KNOWN_FOR = 2_000, 600.0
"""People whose told zone is not asked for again, and for how many seconds: another replica may hear
of another one."""


class Documents(Protocol):
    """What is needed of the directory."""

    async def get(self, key: str) -> bytes | None: ...
    async def put(self, key: str, body: bytes | None, expected: bytes | None = None) -> bool: ...


class Zones:
    """Zones by sender key."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._told: dict[str, tuple[str, float]] = {}

    async def read_zone(self, accounts: frozenset[str]) -> str:
        """The zone of the person with these accounts, "" if none is known."""
        for kind in (CHOSEN, TOLD):
            for account in sorted(accounts):
                if body := await self._documents.get(kind + account):
                    return body.decode()
        return ""

    async def choose(self, accounts: frozenset[str], zone: str) -> None:
        """From now on `zone`, for all accounts of the person; "" forgets it."""
        for account in sorted(accounts):
            await self._documents.put(CHOSEN + account, zone.encode() or None)

    async def learn(self, sender: Sender) -> None:
        """Keep the zone that the sender's client tells, if there is such a zone. StoreFailed."""
        key, zone = sender.key, sender.zone
        known, until = self._told.get(key, ("", 0.0))
        if not zone or (known == zone and clock.monotonic() < until):
            return
        if _is_zone(zone) and await self._documents.get(TOLD + key) != zone.encode():
            await self._documents.put(TOLD + key, zone.encode())
        if len(self._told) >= KNOWN:
            self._told.clear()
        self._told[key] = (zone, clock.monotonic() + KNOWN_FOR)


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        return False
    return True
