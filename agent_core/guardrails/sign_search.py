"""Searches a text only where a sign of what is searched for stands: a search for plain text is many
times faster than an expression, which is tried at each character."""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, TypeAlias

Sign: TypeAlias = str | re.Pattern[str]
"""Contained in all finds, or right before them: text, or an expression that begins with a rare
character."""
_BRIEF = 200
"""Characters of a text in which one expression for hundreds of signs is faster than each alone."""
_DENSE = 8
"""With a start to try for each so many characters, a search of the whole text is faster."""


def has_any(signs: tuple[str, ...], text: str) -> bool:
    """Return True if one of the texts occurs in `text`."""
    return any(map(text.__contains__, signs))


def compile_signs(signs: Iterable[str]) -> re.Pattern[str]:
    """Compile an expression that has a match where one of the texts, none of which is empty,
    begins. Alternatives share their beginnings, so that one search of a sentence is faster than
    one for each text."""
    tree: dict[str, Any] = {}
    for sign in signs:
        node = tree
        for letter in sign:
            node = node.setdefault(letter, {})
        node[""] = None
    return re.compile(_write_tree(tree))


def _write_tree(tree: dict[str, Any]) -> str:
    if "" in tree:
        return ""  # longer ones are found with it
    branches = [re.escape(letter) + _write_tree(rest) for letter, rest in tree.items()]
    return f"(?:{'|'.join(branches)})" if len(branches) > 1 else "".join(branches)


class SignTable:
    """Numbers, each with a text that is the sign of it. Most texts are short and contain none."""

    def __init__(self, rows: Iterable[tuple[int, str]]) -> None:
        self._rows = tuple(rows)

    def find(self, text: str) -> set[int]:
        """Return the numbers whose signs occur in `text`."""
        if len(text) <= _BRIEF and self._any.search(text) is None:
            return set()
        return {number for number, sign in self._rows if sign in text}

    @cached_property
    def _any(self) -> re.Pattern[str]:
        return compile_signs(sign for _, sign in self._rows)


def find_sign(sign: Sign, text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of all places of a sign in `text`."""
    if isinstance(sign, re.Pattern):
        yield from (found.span() for found in sign.finditer(text))
        return
    at = text.find(sign)
    while at >= 0:
        yield at, at + len(sign)
        at = text.find(sign, at + 1)


def search_ranges(
    pattern: re.Pattern[str], text: str, ranges: list[tuple[int, int]]
) -> Iterator[re.Match[str]]:
    """Yield what `pattern.finditer` does. All matches start in one of `ranges`, each the first and
    the last start."""
    if sum(last - first + 1 for first, last in ranges) * _DENSE > len(text):
        yield from pattern.finditer(text)
        return
    done = 0
    for first, last in sorted(ranges):
        done = max(first, done)
        while done <= last:
            found = pattern.match(text, done)
            if found is not None:
                yield found
            done = found.end() if found is not None else done + 1
