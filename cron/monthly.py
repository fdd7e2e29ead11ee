"""Parses days of the month as people say them: 'last friday of the month at 9', 'every 31st at 8'.
English and German, as in `relative.py`.

Never guesses: 'every second tuesday' may be one in two weeks or one a month, and is refused.
"""

import re

from cron.job import ScheduleError
from cron.relative import WEEKDAYS, read_clock_of
from cron.spans import match_any

LAST = "L"
_NTH = {
    "first": "1", "1st": "1", "second": "2", "2nd": "2", "third": "3", "3rd": "3",
    "fourth": "4", "4th": "4", "last": LAST,
    "ersten": "1", "erster": "1", "zweiten": "2", "dritten": "3", "vierten": "4",
    "letzten": LAST, "letzter": LAST,
}  # fmt: skip
_SURE = ("1", LAST)
"""A month's weekdays that are clear without the word month."""
_WHOLE_DAY = ("day", "tag")
_MONTHLY = re.compile(
    r"\b(?:(?:of|in) (?:the|each|every) month|(?:every|each) month|monthly"
    r"|(?:jedes|des|im|eines|jeden) monats?|monatlich)\b"
)
_EVERY = r"(?:(?P<every>every|each|jede[nrms]?) )?"
_DAY = re.compile(
    rf"{_EVERY}(?:(?:on|am|zum) )?(?:(?:the|den|der) )?"
    rf"(?:(?P<nth>{match_any(_NTH)})(?: (?P<day>{match_any((*WEEKDAYS, *_WHOLE_DAY))}))?"
    r"|(?P<number>\d{1,2})(?:st|nd|rd|th|\.))(?![\w.])"
)


def read_monthly(text: str) -> str | None:
    """Return the cron fields of the times in `text`; None if there are none. ScheduleError for two
    of them, no time of day, or a day that no month has."""
    words = " ".join(text.lower().split()).rstrip(".!")
    rest, monthly = _MONTHLY.subn(" ", words)
    rest = " ".join(rest.split())
    found = _DAY.search(rest)
    if found is None or not (monthly or found["every"]):
        return None
    days = _read_days(found, bool(monthly))
    if days is None:
        return None
    rest = f"{rest[: found.start()]} {rest[found.end() :]}".strip()
    if not rest:
        raise ScheduleError(f"Name a time of day too, like {words!r} at nine.")
    clock = read_clock_of("", rest)
    if clock is None:
        return None
    second = f"{clock.second} " if clock.second else ""
    return f"{second}{clock.minute} {clock.hour} {days}"


def _read_days(found: re.Match[str], monthly: bool) -> str | None:
    """The last three fields."""
    nth, day = _NTH.get(found["nth"] or "", ""), found["day"] or ""
    if day in WEEKDAYS:
        if not monthly and nth not in _SURE:
            raise ScheduleError(
                f"{found[0]!r} can mean two things. Write '{found['nth']} {day} of the month at "
                "9', or 'every 14d' for each other week."
            )
        number = (WEEKDAYS[day] + 1) % 7
        return f"* * {number}L" if nth == LAST else f"* * {number}#{nth}"
    if day in _WHOLE_DAY or (nth and monthly):
        return f"{nth} * *" if monthly else None
    if not found["number"]:
        return None
    if not 1 <= int(found["number"]) <= 31:
        raise ScheduleError(f"No month has a day {found['number']}.")
    return f"{int(found['number'])} * *"
