"""Schedules in the words of each language: the usual ones in sentences of ours, days and months by
their short names, which no language bends. Pure."""

import re
from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Literal, cast, get_args

from cronsim import CronSim

from gateway.texts.languages import Texts

_Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_Month = Literal[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
]  # fmt: skip
_Unit = Literal["unit_d", "unit_h", "unit_min", "unit_s"]
_Rest = Literal[
    "and", "range", "minutes", "hours", "daily", "weekly", "monthly", "yearly", "nth_weekday",
    "last_weekday", "last_day",
]  # fmt: skip
_DAYS: tuple[_Day, ...] = get_args(_Day)
_MONTHS: tuple[_Month, ...] = get_args(_Month)
_UNITS: tuple[tuple[_Unit, int], ...] = (
    ("unit_d", 86_400),
    ("unit_h", 3_600),
    ("unit_min", 60),
    ("unit_s", 1),
)
MAX_TIMES = 12
"""Maximum times of a day that are listed one by one."""
_SOME_DAY = datetime(2025, 1, 1)  # noqa: DTZ001  # wall-clock time without a zone is meant
_SIZES = (60, 60, 24, 0, 12, 0)
"""Of cron's fields with seconds; 0 where even steps leave a rest."""
SPAN = 3
"""Minimum days or months in a row that are written as a range."""

ENGLISH: dict[_Day | _Month | _Unit | _Rest, str] = {
    "mon": "Mon",
    "tue": "Tue",
    "wed": "Wed",
    "thu": "Thu",
    "fri": "Fri",
    "sat": "Sat",
    "sun": "Sun",
    "jan": "Jan",
    "feb": "Feb",
    "mar": "Mar",
    "apr": "Apr",
    "may": "May",
    "jun": "Jun",
    "jul": "Jul",
    "aug": "Aug",
    "sep": "Sep",
    "oct": "Oct",
    "nov": "Nov",
    "dec": "Dec",
    "and": ", ",
    "range": "{first}–{last}",
    "unit_d": "{n} d",
    "unit_h": "{n} h",
    "unit_min": "{n} min",
    "unit_s": "{n} s",
    "minutes": "Every {n:minute|{n} minutes}",
    "hours": "Every {n:hour|{n} hours}, at minute {minute}",
    "daily": "Every day at {times}",
    "weekly": "Every week ({days}) at {times}",
    "monthly": "Every month, on day {days}, at {times}",
    "yearly": "Every year ({months}), on day {days}, at {times}",
    "nth_weekday": "Every month ({day} no. {n}) at {times}",
    "last_weekday": "Every month (last {day}) at {times}",
    "last_day": "Every month, on the last day, at {times}",
}
WORDS: Texts[_Day | _Month | _Unit | _Rest] = Texts({"en": ENGLISH}, Path(__file__).parent / "data")


def describe_span(seconds: int, language: str = "") -> str:
    """`1 d 12 h`, `90 s` as `1 min 30 s`."""
    parts = []
    for unit, size in _UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(WORDS.say(unit, language, n=count))
    return " ".join(parts)


def describe_usual(fields: str, language: str) -> str:
    """Describe cron's five fields in the language; "" for unusual ones."""
    given = fields.split()
    if len(given) != 5:
        return ""
    minute, hour, day, month, weekday = given
    if day == month == weekday == "*" and (told := _describe_steps(minute, hour, language)):
        return told
    minutes, hours = _read(minute, 0, 59), _read(hour, 0, 23)
    if not minutes or not hours or len(minutes) * len(hours) > MAX_TIMES:
        return ""
    between = WORDS.say("and", language)
    times = between.join(f"{h:02}:{m:02}" for h, m in product(hours, minutes))
    if told := _describe_ends(day, month, weekday, times, language):
        return told
    if day == month == "*":
        days = _read(weekday, 0, 7, _DAYS[-1:] + _DAYS)
        if weekday == "*" or not days:
            return WORDS.say("daily", language, times=times) if weekday == "*" else ""
        named = _name(sorted({(one - 1) % 7 for one in days}), _DAYS, language)
        return WORDS.say("weekly", language, days=named, times=times)
    dates = _read(day, 1, 31)
    if weekday != "*" or not dates:
        return ""
    listed = between.join(map(str, dates))
    if month == "*":
        return WORDS.say("monthly", language, days=listed, times=times)
    months = _read(month, 1, 12, ("", *_MONTHS))
    if not months:
        return ""
    named = _name([one - 1 for one in months], _MONTHS, language)
    return WORDS.say("yearly", language, months=named, days=listed, times=times)


def write_out(fields: str) -> str:
    """Return the fields with lists in place of steps that leave a rest: `*/45` is not every 45
    minutes. "" for what has no true words: days that must fit both fields, and days such as the
    last among others."""
    given = fields.split()
    read = CronSim(fields, _SOME_DAY)
    values: tuple[Collection[object], ...] = (
        read.seconds, read.minutes, read.hours, read.days, read.months, read.weekdays,
    )  # fmt: skip
    day, weekday = given[-3], given[-1]
    if read.day_and and day != "*" and weekday != "*":
        return ""
    skipped = len(values) - len(given)
    for n, (size, found) in enumerate(zip(_SIZES[skipped:], values[skipped:], strict=True)):
        numbers = [one for one in found if isinstance(one, int) and one >= 0]
        if len(numbers) < len(found):
            if len(found) > 1:
                return ""
        elif "/" in given[n] and not (size and _read_step(given[n], size)):
            given[n] = ",".join(map(str, sorted(numbers)))
    return " ".join(given)


def name_in_english(language: str) -> dict[str, str]:
    """Days and months by their English names, as the language has them."""
    return {
        english: WORDS.say(key, language)
        for key, english in zip((*_DAYS, *_MONTHS), _IN_ENGLISH, strict=True)
    }


_IN_ENGLISH = (
    *("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)


def _describe_ends(day: str, month: str, weekday: str, times: str, language: str) -> str:
    """`5L`, `1#2` and a day `L`, in each month."""
    if month != "*":
        return ""
    if (day, weekday) == ("L", "*"):
        return WORDS.say("last_day", language, times=times)
    which = re.fullmatch(r"([0-7])(?:L|#([1-5]))", weekday) if day == "*" else None
    if which is None:
        return ""
    name = WORDS.say(_DAYS[(int(which[1]) - 1) % 7], language)
    if which[2] is None:
        return WORDS.say("last_weekday", language, day=name, times=times)
    return WORDS.say("nth_weekday", language, day=name, n=which[2], times=times)


def _describe_steps(minute: str, hour: str, language: str) -> str:
    """`*/15 *` and `5 */2`, where the steps part the hour or the day evenly."""
    if hour == "*" and (step := _read_step(minute, 60)):
        return WORDS.say("minutes", language, n=step)
    if minute.isdecimal() and (step := _read_step(hour, 24)):
        return WORDS.say("hours", language, n=step, minute=minute)
    return ""


def _read_step(field: str, whole: int) -> int:
    """Return 1 for a star, the step of `*/15`; 0 for anything else, or a step that leaves a
    rest."""
    if field == "*":
        return 1
    step = field.removeprefix("*/")
    known = field.startswith("*/") and step.isdecimal() and int(step) > 0
    return int(step) if known and whole % int(step) == 0 else 0


def _read(field: str, low: int, high: int, names: Sequence[str] = ()) -> list[int]:
    """Return the numbers of `1,3` and `1-5`, also of names; [] for any other form."""
    found: set[int] = set()
    for part in field.lower().split(","):
        first, dash, last = part.partition("-")
        ends = [_number(first, names), _number(last if dash else first, names)]
        if not low <= ends[0] <= ends[1] <= high:
            return []
        found.update(range(ends[0], ends[1] + 1))
    return sorted(found)


def _number(word: str, names: Sequence[str]) -> int:
    if word.isdecimal() and len(word) < 3:
        return int(word)
    return names.index(word) if word and word in names else -1


def _name(numbers: Sequence[int], names: Sequence[str], language: str) -> str:
    """Days or months by name; three in a row, or more, as the first and the last."""
    runs: list[list[int]] = []
    for one in numbers:
        if runs and one == runs[-1][-1] + 1:
            runs[-1].append(one)
        else:
            runs.append([one])
    said = []
    for run in runs:
        words = [WORDS.say(cast(_Day, names[one]), language) for one in run]
        if len(run) >= SPAN:
            words = [WORDS.say("range", language, first=words[0], last=words[-1])]
        said += words
    return WORDS.say("and", language).join(said)
