"""Parses moments as people say them: 'tomorrow at nine', 'in 20 Minuten', 'next friday 18:00',
'24.12. um 18 Uhr'. English and German, beside the exact forms of `schedule.py`.

Never guesses: a day without a time of day is refused, and so is a past moment.
"""

import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from cron.dates import choose_moment, find_date
from cron.job import ScheduleError
from cron.schedule import find_moment, zone_of
from cron.spans import WORDS, match_any, read_spans

NEAR = {
    "today": 0, "tonight": 0, "heute": 0, "tomorrow": 1, "morgen": 1,
    "day after tomorrow": 2, "the day after tomorrow": 2, "übermorgen": 2, "uebermorgen": 2,
}  # fmt: skip
_WEEK = (
    ("monday", "mon", "montag"), ("tuesday", "tue", "tues", "dienstag"),
    ("wednesday", "wed", "mittwoch"), ("thursday", "thu", "thurs", "donnerstag"),
    ("friday", "fri", "freitag"), ("saturday", "sat", "samstag", "sonnabend"),
    ("sunday", "sun", "sonntag"),
)  # fmt: skip
WEEKDAYS = {name: n for n, names in enumerate(_WEEK) for name in names}
_BEFORE_NOON = ("morning", "früh", "morgen", "vormittag", "am", "a.m.")
_PARTS = (
    *("morning", "afternoon", "evening", "night"),
    *("früh", "morgen", "vormittag", "nachmittag", "abend"),
)
_AFTER_NOON = ("afternoon", "evening", "nachmittag", "abend", "pm", "p.m.", "night")


_FROM_NOW = " from now"
_NEXT = "next|coming|nächsten|nächster|naechsten|kommenden|kommender"
_DAY = re.compile(
    rf"\b(?:(?:on|this|am|diesen)\s+)?(?:(?P<next>{_NEXT})\s+)?"
    rf"(?P<day>{match_any(NEAR | WEEKDAYS)})(?:\s*(?P<part>{match_any(_PARTS)}))?\b"
)
_CLOCK = re.compile(
    r"(?:(?P<hour>\d{1,2})(?:[:.](?P<minute>\d{2}))?(?::(?P<second>\d{2}))?"
    rf"|(?P<word>{match_any(WORDS)})|(?P<half>half past|halb)\s+(?P<of>\w+)"
    r"|(?P<noon>noon|midday|mittag)|(?P<midnight>midnight|mitternacht))"
    r"(?:\s*o'clock|\s*uhr(?:\s*(?P<after>\d{1,2}))?)?"
    rf"\s*(?P<side>{match_any(_BEFORE_NOON + _AFTER_NOON)})?"
)
_FILLER = re.compile(r"\b(?:at|um|in the|der|the|gegen)\b|,")
_LIMIT = timedelta(days=3_660)


def read_relative(text: str, zone: str, now: float) -> str | None:
    """Return the moment in `text` as a schedule in exact form; None if there is none. `now`:
    seconds since 1970. ScheduleError for an impossible one."""
    said = " ".join(text.lower().replace("’", "'").split()).rstrip("!")
    words = said.rstrip(".!")
    if words.endswith(_FROM_NOW):
        words = f"in {words.removeprefix('in ').removesuffix(_FROM_NOW)}"
    where = zone_of(zone)
    local = datetime.fromtimestamp(now, UTC).astimezone(where)
    moment = _read_span(words, local, where) if words.startswith("in ") else None
    moment = moment or _read_date(said, local, where) or _read_day(words, local, where)
    if moment is None:
        return None
    if moment.timestamp() <= now:
        raise ScheduleError("That time is in the past.")
    at = moment.astimezone(UTC)
    return f"at {at:%Y-%m-%dT%H:%M:%S}Z"


def _read_span(words: str, local: datetime, zone: ZoneInfo) -> datetime | None:
    """'in 20 minutes', 'in 2 days at nine'."""
    days, seconds, rest = read_spans(words.removeprefix("in "))
    if not (seconds or days):
        return None
    if timedelta(days=days, seconds=seconds) > _LIMIT:
        raise ScheduleError("That is more than ten years away.")
    day = (local + timedelta(days=days)).replace(tzinfo=None)
    if rest:
        clock = read_clock(rest) if days and not seconds else None
        return None if clock is None else find_moment(datetime.combine(day, clock), zone)
    begin = find_moment(day, zone) if days else local
    return begin.astimezone(UTC) + timedelta(seconds=seconds)


def _read_date(words: str, local: datetime, zone: ZoneInfo) -> datetime | None:
    """'24.12. um 18 Uhr', 'on the 24th at 9'."""
    said = find_date(words) if words else None
    if said is None:
        return None
    clock = read_clock(said.rest)
    if clock is None:
        if not said.rest:
            raise ScheduleError(f"Name a time of day too, like {words!r} at nine.")
        return None
    return choose_moment(said, clock, local, zone)


def _read_day(words: str, local: datetime, zone: ZoneInfo) -> datetime | None:
    """'tomorrow at nine', 'um 18 Uhr am Freitag', 'at 18:00'."""
    match = _DAY.search(words)
    rest = words if match is None else f"{words[: match.start()]} {words[match.end() :]}"
    part = (match["part"] or "") if match is not None else ""
    if match is not None and match["day"] == "tonight":
        part = "night"
    if match is None and not re.match(r"(?:at|um|gegen)\b|\d{1,2}:\d\d\b", words):
        return None
    clock = read_clock_of(part, rest)
    if clock is None:
        if match is not None and not _FILLER.sub("", rest).strip():
            raise ScheduleError(f"Name a time of day too, like {words!r} at nine.")
        return None
    if match is None:
        moment = find_moment(datetime.combine(local.date(), clock), zone)
        tomorrow = datetime.combine(local.date() + timedelta(days=1), clock)
        return moment if moment > local else find_moment(tomorrow, zone)
    day = _find_day(match, local, clock)
    return find_moment(datetime.combine(day, clock), zone)


def _find_day(match: re.Match[str], local: datetime, clock: time) -> date:
    """Return the day; for a weekday the next one, today only if it is not over and 'next' does not
    precede it."""
    word = match["day"]
    if word in NEAR:
        return local.date() + timedelta(days=NEAR[word])
    ahead = (WEEKDAYS[word] - local.weekday()) % 7
    over = match["next"] is not None or clock <= local.time()
    return local.date() + timedelta(days=7 if ahead == 0 and over else ahead)


def read_clock_of(part: str, text: str) -> time | None:
    """Parse a time like `read_clock`, in a `part` of the day, which `text` may name in other words,
    too ('this evening at 6 pm')."""
    if (clock := read_clock(f"{text} {part}".strip())) is not None:
        return clock
    alone = read_clock(text) if part else None
    return alone if alone is not None and _turn_to_side(alone.hour, part) == alone.hour else None


def read_clock(text: str) -> time | None:
    """Parse a time of day alone; None if it is none. ScheduleError."""
    words = " ".join(_FILLER.sub(" ", text).split())
    match = _CLOCK.fullmatch(words)
    if match is None:
        return None
    if match["half"]:
        hour = WORDS.get(match["of"], 0) or (int(match["of"]) if match["of"].isdecimal() else 99)
        hour, minute = (hour - 1, 30) if match["half"] == "halb" else (hour, 30)
    elif match["noon"] or match["midnight"]:
        hour, minute = (12, 0) if match["noon"] else (0, 0)
    else:
        hour = int(match["hour"]) if match["hour"] else WORDS[match["word"]]
        minute = int(match["minute"] or match["after"] or 0)
    hour = _turn_to_side(hour, match["side"] or "")
    if not (0 <= hour < 24 and minute < 60 and int(match["second"] or 0) < 60):
        raise ScheduleError(f"There is no time of day {text.strip()!r}.")
    return time(hour, minute, int(match["second"] or 0))


def _turn_to_side(hour: int, side: str) -> int:
    """Return `hour` in the named half of the day; 99 if there is none."""
    if side in _AFTER_NOON:
        return hour + 12 if hour < 12 else hour
    if side in _BEFORE_NOON:
        return 0 if hour == 12 else hour if hour < 12 else 99
    return hour
