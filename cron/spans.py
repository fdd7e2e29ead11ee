"""Words for numbers and for lengths of time, in English and German."""

import re

_NUMBERS = (
    ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
    + ("twelve",),
    ("eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf")
    + ("zwölf",),
)
_MORE = {"fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "sixty": 60, "ninety": 90}
_MORE |= {"fünfzehn": 15, "zwanzig": 20, "dreißig": 30, "vierzig": 40, "sechzig": 60, "neunzig": 90}
_ONES = dict.fromkeys(("a", "an", "ein", "eine", "einer", "einem", "einen"), 1)
WORDS = {word: n for words in _NUMBERS for n, word in enumerate(words, 1)} | _MORE | _ONES
UNITS = {
    "second": 1, "seconds": 1, "sec": 1, "secs": 1, "s": 1, "sekunde": 1, "sekunden": 1,
    "minute": 60, "minutes": 60, "min": 60, "mins": 60, "m": 60, "minuten": 60,
    "hour": 3_600, "hours": 3_600, "h": 3_600, "hr": 3_600, "hrs": 3_600, "stunde": 3_600,
    "stunden": 3_600, "std": 3_600,
}  # fmt: skip
"""Seconds."""
DAYS = {
    "day": 1, "days": 1, "d": 1, "tag": 1, "tage": 1, "tagen": 1,
    "week": 7, "weeks": 7, "w": 7, "wk": 7, "wks": 7, "woche": 7, "wochen": 7,
}  # fmt: skip
HALVES = ("half an hour", "half hour", "einer halben stunde", "halben stunde", "halbe stunde")


def match_any(words: dict[str, int] | dict[str, str] | tuple[str, ...]) -> str:
    """A pattern for any of `words`, the longest first."""
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


COUNT = rf"\d{{1,9}}(?:[.,]\d{{1,2}})?|{match_any(WORDS)}"
SPAN = re.compile(
    rf"(?P<half>{match_any(HALVES)})(?![a-zäöüß])"
    rf"|(?P<count>{COUNT})\s*(?P<unit>{match_any(UNITS | DAYS)})(?![a-zäöüß])"
)
_BETWEEN = re.compile(r"[\s,]*(?:(?:and|und)\s+)?")


def read_spans(text: str) -> tuple[int, int, str]:
    """Return (days, seconds, rest) of the durations at the start of `text`; parts of a day are
    seconds."""
    seconds = days = at = 0
    while found := SPAN.match(text, at):
        if found["half"]:
            seconds += 1_800
        else:
            count, unit = read_number(found["count"]), found["unit"]
            whole = int(count) if unit in DAYS else 0
            seconds += round((count - whole) * UNITS.get(unit, DAYS.get(unit, 0) * 86_400))
            days += whole * DAYS.get(unit, 0)
        between = _BETWEEN.match(text, found.end())
        at = between.end() if between is not None else found.end()
    return days, seconds, text[at:]


def read_number(word: str) -> float:
    """Return the number of a word or digits."""
    return WORDS[word] if word in WORDS else float(word.replace(",", "."))
