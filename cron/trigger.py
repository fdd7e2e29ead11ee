"""Computes when a schedule is due. Pure; moments are seconds since 1970.

Times of the day follow the rule of Debian's cron: one that is skipped when the clock is put forward
comes at that moment, one that is repeated when it is put back comes once, the first time. A
schedule with a star for minutes or hours is due at every real one that matches.
"""

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

from cronsim import CronSim
from msgspec import Struct

from cron.job import Cron, Every, Once, Schedule
from cron.schedule import change_between, find_moment, zone_of

MAX_APART = 100
"""Maximum missed times that are listed one by one; earlier ones are counted."""


MAX_COUNTED = 500_000
"""Missed times that are counted: those of a year, one a minute. Of more the newest are found
without passing through all of them, as a clock may be set forward by decades."""
_SPAN = 3_600.0
"""Seconds before now within which the newest are looked for first."""


class MissedTimes(Struct, frozen=True, kw_only=True):
    """Times up to now: the newest one by one, of earlier ones `first`, `last` and the count, as far
    as it went."""

    times: tuple[float, ...]
    left_out: int = 0
    first: float = 0.0
    last: float = 0.0


def next_fire(schedule: Schedule, zone: str, after: float) -> float | None:
    """Return the first time after `after`; None if there is none."""
    return next(times(schedule, zone, after), None)


def times(schedule: Schedule, zone: str, after: float) -> Iterator[float]:
    """Yield all times after `after`, in order."""
    match schedule:
        case Once(at=at):
            if at > after:
                yield at
        case Every(seconds=seconds):
            while True:
                after += seconds
                yield after
        case Cron():
            where = zone_of(zone)
            yield from (
                _fixed_times(schedule, where, after)
                if schedule.fixed
                else _iterate_fires(schedule, where, after)
            )


def find_missed(
    schedule: Schedule, zone: str, first: float, now: float, most: int = MAX_COUNTED
) -> MissedTimes:
    """`first`, which is due, and the times after it up to `now`. Of those that are left out `most`
    are counted."""
    kept: deque[float] = deque((first,), MAX_APART + 1)
    count = 1
    for time in _list_until(schedule, zone, first, now):
        kept.append(time)
        count += 1
        if count == most + MAX_APART:
            kept = _find_newest(schedule, zone, kept, now)
            break
    left_out = max(0, count - MAX_APART)
    last = kept.popleft() if left_out else 0.0
    return MissedTimes(
        times=tuple(kept), left_out=left_out, first=first if left_out else 0.0, last=last
    )


def _list_until(schedule: Schedule, zone: str, after: float, now: float) -> Iterator[float]:
    return takewhile(lambda time: time <= now, times(schedule, zone, after))


def _find_newest(schedule: Schedule, zone: str, known: deque[float], now: float) -> deque[float]:
    """Return as many of the newest times up to `now` as `known` has; those are times before it."""
    span = _SPAN
    while True:
        after, found = now - span, deque[float]((), len(known))
        if after <= known[-1]:
            after, found = known[-1], known.copy()
        elif isinstance(schedule, Every):  # it leads there in whole steps
            after -= (after - known[-1]) % schedule.seconds
        found.extend(_list_until(schedule, zone, after, now))
        if len(found) == len(known):
            return found
        span *= 2


def _fixed_times(cron: Cron, zone: ZoneInfo, after: float) -> Iterator[float]:
    """Times of the day: along the wall clock, each one once."""
    wall = _utc(after).astimezone(zone).replace(tzinfo=None)
    last = after
    for wanted in CronSim(" ".join(cron.fields), wall):
        moment = find_moment(wanted, zone).timestamp()
        if moment > last:
            last = moment
            yield moment


def _iterate_fires(cron: Cron, zone: ZoneInfo, after: float) -> Iterator[float]:
    """Yield every matching moment, along the wall clock from one change of it to the next."""
    fields = " ".join(cron.fields)
    start, inclusive = _utc(after), False
    while True:
        offset = start.astimezone(zone).utcoffset() or timedelta()
        wall = (start + offset).replace(tzinfo=None)
        if inclusive:
            wall -= timedelta(seconds=1)
        change: datetime | None = None
        seen = start
        for wanted in CronSim(fields, wall):
            moment = wanted.replace(tzinfo=UTC) - offset
            change = change_between(seen, moment, zone)
            if change is not None:
                break
            seen = moment
            yield moment.timestamp()
        if change is None:
            return
        start, inclusive = change, True


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
