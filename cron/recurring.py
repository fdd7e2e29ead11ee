"""Parses recurring times as people say them: 'every weekday at 9', 'montags um halb zehn'. English
and German, as in `relative.py`.

Never guesses: days without a time of day are refused.
"""

import re

from cron.job import ScheduleError
from cron.monthly import read_monthly
from cron.relative import WEEKDAYS, read_clock_of
from cron.spans import match_any

_EVERY = r"every|each|jede[nrms]?"
_SINGLE = {
    "day": "*", "tag": "*",
    "weekday": "1-5", "workday": "1-5", "working day": "1-5", "business day": "1-5",
    "werktag": "1-5", "arbeitstag": "1-5", "wochentag": "1-5",
    "weekend": "0,6", "wochenende": "0,6",
    "morning": "*", "afternoon": "*", "evening": "*", "night": "*",
    "morgen": "*", "vormittag": "*", "nachmittag": "*", "abend": "*",
}  # fmt: skip
"""Behind 'every'."""
_PLURAL = {
    "daily": "*", "täglich": "*", "taeglich": "*",
    "weekdays": "1-5", "workdays": "1-5", "werktags": "1-5", "wochentags": "1-5",
    "weekends": "0,6",
}  # fmt: skip
"""Plurals that stand alone."""
_PARTS = ("morning", "afternoon", "evening", "night", "vormittag", "nachmittag", "abend")


_DAY = rf"(?:{match_any(WEEKDAYS)})s?"
_RANGE = re.compile(
    rf"\b({match_any(WEEKDAYS)})\s*(?:-|–|to|through|bis)\s*({match_any(WEEKDAYS)})\b"
)
_LIST = rf"{_DAY}(?:(?:\s*,\s*(?:(?:and|und)\s+)?|\s+(?:and|und)\s+){_DAY})*"
_DAYS = re.compile(
    rf"\b(?:(?P<every>{_EVERY})\s+(?:(?P<single>{match_any(_SINGLE)})|(?P<named>{_LIST}))"
    rf"|(?:on\s+)?(?P<plural>{match_any(_PLURAL)})|(?:on\s+)?(?P<plurals>{_LIST}))\b"
    rf"(?:\s+(?P<part>{match_any(_PARTS)}))?"
)


def read_recurring(text: str) -> str | None:
    """Return the cron fields of the times in `text`; None if there are none. ScheduleError without
    a time of day."""
    if (monthly := read_monthly(text)) is not None:
        return monthly
    words = " ".join(text.lower().split()).rstrip(".!")
    words = _RANGE.sub(_name_range, words)
    found = _DAYS.search(words)
    days = _read_days(found) if found is not None else ""
    if found is None or not days:
        return None
    rest = f"{words[: found.start()]} {words[found.end() :]}".strip()
    if not rest:
        raise ScheduleError(f"Name a time of day too, like {words!r} at nine.")
    part = found["part"] or (found["single"] if found["single"] in _PARTS else "") or ""
    clock = read_clock_of(part, rest)
    if clock is None:
        return None
    second = f"{clock.second} " if clock.second else ""
    return f"{second}{clock.minute} {clock.hour} * * {days}"


def _name_range(found: re.Match[str]) -> str:
    """'mon-fri' as the list of its days."""
    first, last = WEEKDAYS[found[1]], WEEKDAYS[found[2]]
    names = list(WEEKDAYS)
    days = ((first + n) % 7 for n in range((last - first) % 7 + 1))
    return " and ".join(f"{next(one for one in names if WEEKDAYS[one] == day)}s" for day in days)


def _read_days(found: re.Match[str]) -> str:
    """Return the days as cron writes them; "" if they do not recur."""
    if found["single"]:
        return _SINGLE[found["single"]]
    if found["plural"]:
        return _PLURAL[found["plural"]]
    names = re.findall(rf"\b({match_any(WEEKDAYS)})(s?)\b", found["named"] or found["plurals"])
    if not found["every"] and not all(plural for _, plural in names):
        return ""
    numbers = {(WEEKDAYS[name] + 1) % 7 for name, _ in names}
    first, last = min(numbers), max(numbers)
    if len(numbers) > 2 and last - first == len(numbers) - 1:
        return f"{first}-{last}"
    return ",".join(map(str, sorted(numbers)))
