"""Parses schedules: cron fields, own macros, `every 2h`, `at 2026-12-01 09:00`. Never guesses: an
unknown form is refused with the reason."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from cron.job import Cron, Every, Once, Schedule, ScheduleError
from cron.spans import read_spans

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
    "@weekdays": "0 9 * * 1-5",
    "@weekends": "0 9 * * 6,0",
}
MAX_SHOWN = 60
"""Maximum characters of an unknown form that are quoted."""
NAMES = ("second", "minute", "hour", "day of the month", "month", "day of the week")
SIZES = (60, 60, 24, 31, 12, 8)
_DATE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d", re.ASCII)
"""Matches the start of a moment without its 'at'."""
_SINGLE = re.compile(r"^(minute|hour|stunde)$")
_NAMED = re.compile(
    r"MON|TUE|WED|THU|FRI|SAT|SUN|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC|LW"
)
_WORD = re.compile(r"[^\W\d_]{2}")
_INTERVAL = "Write 'every 90m', 'every 1d 12h' or 'every weekday at 9'."
_ALLOWED = re.compile(r"[0-9A-Z*/,\-#]+", re.ASCII)
_TOO_MANY = re.compile(r"[0-9]{5}", re.ASCII)
_TO_SUNDAY = re.compile(r"(MON|TUE|WED|THU|FRI|SAT|[1-6])-(?:SUN|0)(?=[,/]|$)")
"""A range that ends with Sunday, which there is the seventh day."""
_FIRST_YEAR, _LAST_YEAR = 1900, 9998
"""Years whose days are dates in every time zone, and read as they are written."""
_SOME_DAY = datetime(2025, 1, 1)  # noqa: DTZ001  # wall-clock time without a zone is meant


@lru_cache(maxsize=512)
def zone_of(name: str) -> ZoneInfo:
    """Return the zone `name` of the IANA database; ScheduleError if there is none."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        why = f"There is no time zone {name!r}; write one like Europe/Berlin."
        raise ScheduleError(why) from None


@lru_cache(maxsize=2048)
def read_schedule(text: str, zone: str) -> Schedule:
    """Parse a schedule. ScheduleError with the reason."""
    where = zone_of(zone)
    words = text.strip()
    lower = words.lower()
    for every in ("every ", "alle ", "jede "):
        if lower.startswith(every):
            return _read_every(lower.removeprefix(every))
    if lower.startswith("at "):
        return _read_once(words[3:].strip(), where)
    if _DATE.match(words):
        return _read_once(words, where)
    if lower.startswith("@"):
        if lower not in MACROS:
            raise ScheduleError(f"There is no {_shorten(words)}; there are {', '.join(MACROS)}.")
        lower = MACROS[lower]
    return _cron(lower)


def _read_every(text: str) -> Every:
    days, seconds, rest = read_spans(_SINGLE.sub(r"1 \1", text).strip())
    if rest.strip(" ."):
        raise ScheduleError(_INTERVAL)
    seconds += days * 86_400
    if not 0 < seconds <= 366 * 86_400:
        raise ScheduleError("An interval is more than nothing, and a year at most.")
    return Every(seconds=seconds)


def _read_once(text: str, zone: ZoneInfo) -> Once:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        why = "Write a moment like 'at 2026-12-01 09:00' or 'tomorrow at nine'."
        raise ScheduleError(why) from None
    if not _FIRST_YEAR <= when.year <= _LAST_YEAR:
        raise ScheduleError(f"Write a year from {_FIRST_YEAR} to {_LAST_YEAR}.")
    if when.tzinfo is None:
        when = find_moment(when, zone)
    at = when.astimezone(UTC).replace(microsecond=0)
    return Once(at=at.timestamp(), text=f"at {at:%Y-%m-%dT%H:%M:%S}Z")


def _cron(text: str) -> Cron:
    fields = text.upper().split()
    if _WORD.search(_NAMED.sub("", text.upper())):
        raise ScheduleError(
            f"It is not clear when {_shorten(text)!r} is. Write it like 'tomorrow at nine', 'every "
            "weekday at 9', 'last friday of the month at 9', '2026-12-01 09:00' or '30 9 * * 1-5'."
        )
    if len(fields) not in (5, 6):
        why = "Cron has 5 fields (minute hour day month weekday), or 6 with seconds first"
        raise ScheduleError(f"{why}; these are {len(fields)}.")
    if len(fields) == 5:
        fields = ["0", *fields]
    fields[5] = _TO_SUNDAY.sub(r"\1-7", fields[5])
    for name, size, field in zip(NAMES, SIZES, fields, strict=True):
        _check(name, size, field)
    second, minute, hour, day, month, weekday = fields
    made = Cron(fields=(second, minute, hour, day, month, weekday))
    try:
        next(CronSim(" ".join(fields), _SOME_DAY))
    except CronSimError as error:
        raise ScheduleError(_explain(str(error), fields)) from None
    except StopIteration:
        raise ScheduleError("These fields never meet: no day fits all of them.") from None
    return made


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _check(name: str, size: int, field: str) -> None:
    """Refuse forms that the library would read in its own way."""
    if not _ALLOWED.fullmatch(field) or _TOO_MANY.search(field):
        raise ScheduleError(f"The {name} cannot be {_shorten(field)!r}.")
    for step in re.findall(r"/(\d+)", field):
        if int(step) >= size:
            hint = "; for other intervals write 'every 90m'"
            raise ScheduleError(f"The {name} cannot go in steps of {step}{hint}.")


def _explain(reason: str, fields: list[str]) -> str:
    bad = reason.removeprefix("Bad ").replace("day-of-month", NAMES[3])
    name = bad.replace("day-of-week", NAMES[5])
    field = fields[NAMES.index(name)] if name in NAMES else ""
    if name == NAMES[3] and re.fullmatch(r"(29|30|31)(,(29|30|31))*", field):
        return f"There is no day {field} in month {fields[4]}: this would never come."
    return f"The {name} cannot be {_shorten(field)!r}."


def find_moment(wall: datetime, zone: ZoneInfo) -> datetime:
    """The wall-clock time `wall` in `zone` as a moment: the first of two; where the clock is put
    forward over it, the moment at which that happens."""
    at = wall.replace(tzinfo=zone, fold=0)
    seen = at.astimezone(UTC).astimezone(zone)
    if seen.replace(tzinfo=None) == wall:
        return at
    before = at.utcoffset() or timedelta()
    return _change((at - timedelta(days=1)).astimezone(UTC), at.astimezone(UTC), zone, before)


def _change(low: datetime, high: datetime, zone: ZoneInfo, before: timedelta) -> datetime:
    """The first moment after `low` at which the offset of `zone` is not `before` any more."""
    while high - low > timedelta(seconds=1):
        middle = (low + (high - low) / 2).replace(microsecond=0)
        if middle <= low:
            middle = low + timedelta(seconds=1)
        if middle.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high.astimezone(zone)


def change_between(start: datetime, end: datetime, zone: ZoneInfo) -> datetime | None:
    """The first moment after `start`, up to `end`, at which the offset of `zone` changes (UTC)."""
    offset, low = start.astimezone(zone).utcoffset() or timedelta(), start
    while low < end:
        high = min(end, low + timedelta(hours=12))
        if high.astimezone(zone).utcoffset() != offset:
            return _change(low, high, zone, offset).astimezone(UTC)
        low = high
    return None
