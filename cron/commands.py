"""Commands on schedules: the due times of one."""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice

import msgspec

from cron.job import ScheduleError
from cron.recurring import read_recurring
from cron.relative import read_relative
from cron.schedule import read_schedule, zone_of
from cron.trigger import times
from gateway.clock import now


def print_next(
    schedule: str, zone: str, start: str, count: int, tell: Callable[[str], None], *, as_json: bool
) -> None:
    """Print the next `count` due times of `schedule` after `start` (ISO 8601, "" for now).
    ScheduleError with the reason."""
    where, begin = zone_of(zone), _moment(start, zone)
    schedule = read_recurring(schedule) or read_relative(schedule, zone, begin) or schedule
    found = [
        (datetime.fromtimestamp(time, UTC), datetime.fromtimestamp(time, where))
        for time in islice(times(read_schedule(schedule, zone), zone, begin), count)
    ]
    rows = [
        {"utc": f"{utc:%Y-%m-%dT%H:%M:%S}Z", "local": local.isoformat()} for utc, local in found
    ]
    if as_json:
        tell(msgspec.json.encode(rows).decode())
        return
    for row, (_, local) in zip(rows, found, strict=True):
        tell(f"{row['utc']}  {local:%a %Y-%m-%d %H:%M:%S %Z}")
    if len(rows) < count:
        tell("There are no more after that.")


def _moment(start: str, zone: str) -> float:
    if not start:
        return now()
    try:
        moment = datetime.fromisoformat(start)
    except ValueError:
        raise ScheduleError(f"{start!r} is no moment; write 2026-10-31T00:00:00Z.") from None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=zone_of(zone))
    return aware.timestamp()
