"""Hides words in text, also in text that comes in pieces: what may be the beginning of such a word
waits for the next piece.

What a stream shows is, all pieces together, what `hide` makes of the whole.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from copy import copy
from typing import TypeAlias

from agent_core.guardrails.secret_shapes import find_open_end, hide_shapes


class Redactions:
    """Words to hide, each with the name that stands for it. Of two at one place the longer one
    counts. `empty`: there are none, and no shapes of secrets either."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._shapes = False
        self._names = {word: name for word, name in names.items() if word}
        self._sorted = sorted(self._names)
        self.empty = not self._names
        self._longest = max(map(len, self._sorted), default=0)
        words = map(re.escape, sorted(self._names, key=len, reverse=True))
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
        if self._words is not None and any(word in text for word in self._sorted):
            text = self._words.sub(lambda found: self._names[found[0]], text)
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
            shown += (text[at : found.start()], self._names[found[0]])
            at = found.end()
            if at > end:
                end = self._find_partial(text, at)
        shown.append(text[at:end])
        return "".join(shown), text[end:]

    def _find_partial(self, text: str, start: int) -> int:
        """Where the end of `text` begins that more text could make a word, at `start` at the
        earliest."""
        assert self._first is not None
        for found in self._first.finditer(text, max(start, len(text) - self._longest + 1)):
            end = text[found.start() :]
            near = bisect_left(self._sorted, end)  # words that begin with `end` stand from here on
            if near < len(self._sorted) and self._sorted[near] == end:
                near += 1
            if near < len(self._sorted) and self._sorted[near].startswith(end):
                return found.start()
        return len(text)


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
