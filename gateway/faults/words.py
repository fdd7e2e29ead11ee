"""What failed in the agent, in the person's language. Pure.

What is not found among the fixed texts (a word of a budget, which is in that language already)
stays as it is.
"""

import re
from functools import cache

from gateway.faults.texts import ENGLISH, FaultKey
from gateway.texts import pattern, say

FIELDS = {"name": r"[^\s()]+", "status": r"\d{3}", "setting": r"[\w ]+", "host": r"\S+",
          "seconds": r"[\d.e+]+ s", "detail": r".+?"}  # fmt: skip


def told(words: str, language: str) -> str:
    """`words` in `language`: one sentence, or what several providers said one after another."""
    said, rest = [], words
    while rest:
        found = _first(rest)
        if found is None:
            return words
        key, fields, rest = found
        said.append(say(key, language, **fields))
    return " ".join(said)


def _first(words: str) -> tuple[FaultKey, dict[str, str], str] | None:
    """The text that `words` begins with, its fields, and what comes after it."""
    for key, form in _forms().items():
        if found := form.match(words):
            return key, found.groupdict(), words[found.end() :].lstrip()
    return None


@cache
def _forms() -> dict[FaultKey, re.Pattern[str]]:
    return {key: _form(text) for key, text in ENGLISH.items()}


def _form(text: str) -> re.Pattern[str]:
    """What finds the text, and in it the values of its fields; one that ends with a detail takes
    all there is."""
    end = r"\Z" if text.endswith("{detail}") else r"(?=\s|\Z)"
    return re.compile(pattern(text, FIELDS) + end, re.DOTALL)
