"""Finds dates in a moment as people say it: '24.12. um 18 Uhr', 'december 1 at 9', 'on the 24th at
9'. English and German, as in `relative.py`.

Never guesses: a number that may be a day or a time of day is refused, and so is 12/11.
"""

import re
from datetime import date, datetime, time
from typing import NamedTuple
from zoneinfo import ZoneInfo

from cron.job import ScheduleError
from cron.schedule import find_moment
from cron.spans import match_any

_YEAR = (
    ("january", "jan", "januar", "jänner"), ("february", "feb", "februar"),
    ("march", "mar", "märz", "maerz", "mrz"), ("april", "apr"), ("may", "mai"),
    ("june", "jun", "juni"), ("july", "jul", "juli"), ("august", "aug"),
    ("september", "sep", "sept"), ("october", "oct", "oktober", "okt"), ("november", "nov"),
    ("december", "dec", "dezember", "dez"),
)  # fmt: skip
_MONTHS = {name: n for n, names in enumerate(_YEAR, 1) for name in names}
_NAMES = match_any(_MONTHS)
_DATE = re.compile(
    r"(?<![\w.:/+-])(?:"
    rf"(?P<day>\d{{1,2}})(?:(?:st|nd|rd|th)? |\. ?)(?:of )?(?P<month>{_NAMES})\b\.?"
    rf"|(?P<name>{_NAMES})\.? (?:the )?(?P<after>\d{{1,2}})(?:st|nd|rd|th)?(?![\w:.])"
    r"|(?P<number>\d{1,2})\. ?(?P<of>\d{1,2})\."
    r"|(?P<alone>\d{1,2})(?:st|nd|rd|th|\.)(?=[ ,.]|$)"
    r")(?:,? ?(?P<year>20\d\d)\b)?(?![\w/:+-])"
)
_ARTICLES = frozenset(("the", "den", "der", "dem"))
_ON = frozenset(("on", "zum"))
_AT = frozenset(("at", "um", "gegen"))
_NUMBER = re.compile(r"\d{1,2}")
MAX_YEARS = 9
"""Years within which a 29th of February comes again."""


class SaidDate(NamedTuple):
    """A day, of each month if `month` is 0, of each year if `year` is; `rest` is the text beside
    it."""

    day: int
    month: int
    year: int
    rest: str


def find_date(words: str) -> SaidDate | None:
    """Return the date in `words`, in lower case with single spaces; None if there is none, or it is
    ambiguous."""
    found = _DATE.search(words)
    if found is None:
        return None
    before, named = _cut_prefix(words[: found.start()].split(), words.split()[0])
    if before is None or (before and before[-1] in _AT) or (found["alone"] and not named):
        return None
    rest = f"{' '.join(before)} {words[found.end() :].strip(' ,.')}".strip()
    if _NUMBER.fullmatch(rest):
        return None
    day = found["day"] or found["after"] or found["number"] or found["alone"]
    month = _MONTHS.get(found["month"] or found["name"] or "") or int(found["of"] or 0)
    if found["of"] and not 1 <= month <= 12:
        return None
    return SaidDate(int(day), month, int(found["year"] or 0), rest)


def _cut_prefix(before: list[str], first: str) -> tuple[list[str] | None, bool]:
    """Return the words before a date without those that lead to it, and whether there were any;
    None where 'am' may be one of them or mean the half of the day."""
    kept = list(before)
    while kept and kept[-1].strip(",") in _ARTICLES | _ON:
        kept.pop()
    if kept and kept[-1] == "am":
        timed = len(kept) > 1 and kept[-2][-1].isdecimal()
        if timed and first not in _AT:
            return None, True
        if not timed or first != "at":
            kept.pop()
    return kept, len(kept) < len(before)


def choose_moment(said: SaidDate, clock: time, local: datetime, zone: ZoneInfo) -> datetime:
    """Return the first such moment to come; a past one if its year is given. ScheduleError if there
    is no such day."""
    years = (said.year,) if said.year else range(local.year, local.year + MAX_YEARS)
    for year in years:
        for month in (said.month,) if said.month else range(1, 13):
            try:
                day = date(year, month, said.day)
            except ValueError:
                continue
            moment = find_moment(datetime.combine(day, clock), zone)
            if said.year or moment > local:
                return moment
    raise ScheduleError("There is no such day.")
