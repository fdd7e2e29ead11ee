"""Hides words in text, also in text that comes in pieces: what may be the beginning of such a word
waits for the next piece. A long word is known also where lines end within it, as `base64`, `xxd -p`
and `fold` cut what they print.

What a stream shows is, all pieces together, what `hide` makes of the whole.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from copy import copy
from typing import TypeAlias

from agent_core.guardrails.secret_shapes import find_open_end, hide_shapes

MIN_CUT = 16
"""Characters of a word that is known where lines end within it."""
_LINE_ENDS = str.maketrans("", "", "\r\n")
_LINE_END = re.compile(r"[\r\n]")


class Redactions:
    """Words to hide, each with the name that stands for it. Of two at one place the longer one
    counts. `empty`: there are none, and no shapes of secrets either."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._shapes = False
        self._names = {word: name for word, name in names.items() if word}
        self._sorted = sorted(self._names)
        joined = {_join_lines(word): name for word, name in self._names.items()}
        self._joined = {word: name for word, name in joined.items() if word}
        self._cut = sorted(word for word in self._joined if len(word) >= MIN_CUT)
        self.empty = not self._names
        self._longest = max(map(len, self._sorted), default=0)
        words = map(_write_pattern, sorted(self._names, key=len, reverse=True))
        first = re.escape("".join(sorted({word[0] for word in self._sorted})))
        self._words = re.compile("|".join(words)) if self._names else None
        self._first = re.compile(f"[{first}]") if self._names else None

    def with_shapes(self) -> "Redactions":
        """These, and whatever looks like a secret."""
        other = copy(self)
        other._shapes, other.empty = True, False
        return other

    def hide(self, text: str) -> str:
        """`text` with names in place of the words."""
        if self._words is not None:
            joined = _join_lines(text)
            if any(word in joined for word in self._joined):
                text = self._words.sub(lambda found: self._find_name(found[0]), text)
        return hide_shapes(text) if self._shapes else text

    def part(self, text: str) -> tuple[str, str]:
        """What of `text` can be shown, hidden as by `hide`; and its end, which more text could make
        a word or a secret's shape."""
        if not self._shapes:
            return self._part_words(text)
        end = find_open_end(text)
        while True:  # each round ends earlier, at the beginning of a run
            shown, held = self._part_words(text[:end])
            safe = end - len(held)
            if not held or (earlier := find_open_end(text[:safe])) == safe:
                return hide_shapes(shown), text[safe:]
            end = earlier

    def _part_words(self, text: str) -> tuple[str, str]:
        if self._words is None:
            return text, ""
        shown: list[str] = []
        at, end = 0, self._find_partial(text, 0)
        for found in self._words.finditer(text):
            if found.start() >= end:
                break  # a longer word may begin before it
            shown += (text[at : found.start()], self._find_name(found[0]))
            at = found.end()
            if at > end:
                end = self._find_partial(text, at)
        shown.append(text[at:end])
        return "".join(shown), text[end:]

    def _find_name(self, found: str) -> str:
        return self._names.get(found) or self._joined[_join_lines(found)]

    def _find_partial(self, text: str, start: int) -> int:
        """Where the end of `text` begins that more text could make a word, at `start` at the
        earliest."""
        assert self._first is not None
        for found in self._first.finditer(text, max(start, self._find_window(text))):
            end = text[found.start() :]
            if _is_begun(self._sorted, end) or (
                ("\n" in end or "\r" in end) and _is_begun(self._cut, _join_lines(end))
            ):
                return found.start()
        return len(text)

    def _find_window(self, text: str) -> int:
        """Where the last signs begin that could be all of a word but one, line ends not counted."""
        begin, counted = len(text) - self._longest + 1, len(text)
        while (ends := len(_LINE_END.findall(text, max(begin, 0), counted))) and begin > 0:
            begin, counted = begin - ends, begin
        return max(begin, 0)


def _join_lines(text: str) -> str:
    return text.translate(_LINE_ENDS) if "\n" in text or "\r" in text else text


def _write_pattern(word: str) -> str:
    return (r"(?:\r?\n)?" if len(word) >= MIN_CUT else "").join(map(re.escape, word))


def _is_begun(words: list[str], text: str) -> bool:
    """One of the sorted words begins with `text` and is longer."""
    near = bisect_left(words, text)  # words that begin with it stand from here on
    if near < len(words) and words[near] == text:
        near += 1
    return near < len(words) and words[near].startswith(text)


NOTHING = Redactions({})
"""No words are hidden."""
Hides: TypeAlias = Callable[[], Redactions]
"""What has to be hidden now; a stream keeps to what it began with. May look into a file."""


class StreamRedactor:
    """One stream; `show` gets what may be seen of it."""

    def __init__(self, words: Redactions, show: Callable[[str], None]) -> None:
        self._words, self._show = words, show
        self._held = ""

    def add(self, text: str) -> None:
        """More of it."""
        shown, self._held = self._words.part(self._held + text if self._held else text)
        if shown:
            self._show(shown)

    def end(self) -> None:
        """Nothing more comes: what was held back can be seen."""
        held, self._held = self._held, ""
        if held:
            self._show(self._words.hide(held))

    def drop(self) -> None:
        """What was held back is void."""
        self._held = ""
