"""When a schedule is due."""

from datetime import UTC, datetime
from itertools import islice

from cron.schedule import read_schedule
from cron.trigger import times


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def due(schedule: str, zone: str, start: str, count: int) -> list[str]:
    found = times(read_schedule(schedule, zone), zone, at(start))
    return [f"{datetime.fromtimestamp(one, UTC):%m-%d %H:%M}" for one in islice(found, count)]
