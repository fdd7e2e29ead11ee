"""Moments that the gateway's texts name: values within the text, which each platform writes in its
own way: where it can, as each reader's own time.

A moment is its seconds since 1970, in noncharacters, and words for it. `agent_core.text.clean`
takes noncharacters out of all that people and models write, so only a text of ours can hold a
moment; without them it reads as its words.

Vocabulary: imports nothing of ours.
"""

import re
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

BEGINS, SAYS, ENDS = "\ufdd5", "\ufdd6", "\ufdd7"
ZERO = 0xFDE0
"""The noncharacter for the digit 0; those of the other digits follow."""
DIGITS = f"{chr(ZERO)}-{chr(ZERO + 9)}"
MARKED = re.compile(f"{BEGINS}([{DIGITS}]{{1,11}}){SAYS}([^{BEGINS}{SAYS}{ENDS}]*){ENDS}")
MARKS = re.compile(f"[{BEGINS}{SAYS}{ENDS}{DIGITS}]")


class Moment(Struct, frozen=True, kw_only=True):
    """A moment in a text: seconds since 1970, and in `words`."""

    at: int
    words: str


WriteMoment: TypeAlias = Callable[[Moment], str]


def mark_moment(at: float, words: str) -> str:
    """The moment `at` for a text of ours; `words` where it cannot be written natively."""
    digits = "".join(chr(ZERO + int(digit)) for digit in str(max(int(at), 0)))
    return f"{BEGINS}{digits}{SAYS}{words}{ENDS}"


def has_moment(text: str) -> bool:
    """Return True if `text` contains a mark of a moment."""
    return not text.isascii() and MARKS.search(text) is not None


def write_words(moment: Moment) -> str:
    """The moment in its words."""
    return moment.words


def write_moments(text: str, write: WriteMoment = write_words) -> str:
    """`text` with each of its moments as `write` has it."""
    return drop_moments(MARKED.sub(lambda found: write(_read(found)), text))


def drop_moments(text: str) -> str:
    """Replace the moments in `text` by words. Text without moments is returned as it is."""
    return text if text.isascii() else MARKS.sub("", text)


def split_moments(text: str) -> tuple[str | Moment, ...]:
    """The words and the moments of `text`, in order."""
    found: list[str | Moment] = []
    at = 0
    for one in MARKED.finditer(text):
        found += [drop_moments(text[at : one.start()]), _read(one)]
        at = one.end()
    return tuple(one for one in (*found, drop_moments(text[at:])) if one)


def map_words(text: str, change: Callable[[str], str]) -> str:
    """`text` with all but its moments changed."""
    return "".join(
        change(one) if isinstance(one, str) else mark_moment(one.at, one.words)
        for one in split_moments(text)
    )


def _read(found: "re.Match[str]") -> Moment:
    seconds = int("".join(str(ord(digit) - ZERO) for digit in found[1]))
    return Moment(at=seconds, words=found[2])
