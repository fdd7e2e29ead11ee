"""The time zones that people chose for themselves: a small document for each account."""

from typing import Protocol

from gateway.feature import Context
from gateway.store.rows import TurnRow

ZONE = "zone:"
DEFAULT_ZONE = "UTC"


class Documents(Protocol):
    """What is needed of the directory."""

    async def get(self, key: str) -> bytes | None: ...
    async def put(self, key: str, body: bytes | None, expected: bytes | None = None) -> bool: ...


class Zones:
    """Zones by sender key."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def read_zone(self, accounts: frozenset[str]) -> str:
        """The zone of the person with these accounts, "" if none was chosen."""
        for account in sorted(accounts):
            body = await self._documents.get(ZONE + account)
            if body:
                return body.decode()
        return ""

    async def choose(self, accounts: frozenset[str], zone: str) -> None:
        """From now on `zone`, for all accounts of the person; "" forgets it."""
        for account in sorted(accounts):
            await self._documents.put(ZONE + account, zone.encode() or None)


async def find_zone(context: Context, row: TurnRow) -> tuple[str, bool]:
    """The zone of whoever the turn `row` works for, and whether anybody chose it: the person, else
    the operator. StoreFailed."""
    jobs, services = context.services.jobs, context.services
    zones, accounts = Zones(services.store), await services.access.accounts(row.sender)
    if zone := await zones.read_zone(accounts | {row.sender}):
        return zone, True
    zone = jobs.settings.zone if jobs is not None else DEFAULT_ZONE
    return zone, zone != DEFAULT_ZONE
