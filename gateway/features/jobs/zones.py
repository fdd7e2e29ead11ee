"""The time zone of whoever a turn works for."""

from gateway.feature import Context
from gateway.services.zones import Zones
from gateway.store.rows import TurnRow

DEFAULT_ZONE = "UTC"


async def find_zone(context: Context, row: TurnRow) -> tuple[str, bool]:
    """Return the time zone of the person for whom the turn `row` works, otherwise the operator's,
    and whether anybody chose or told it. StoreFailed."""
    jobs, services = context.services.jobs, context.services
    zones, accounts = Zones(services.store), await services.access.accounts(row.sender)
    if zone := await zones.read_zone(accounts | {row.sender}):
        return zone, True
    zone = jobs.settings.zone if jobs is not None else DEFAULT_ZONE
    return zone, zone != DEFAULT_ZONE
