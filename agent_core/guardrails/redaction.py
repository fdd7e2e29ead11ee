"""Redacts words in text and in streams: what may be the beginning of a word waits for the next
piece.

A long word is also found across line ends, where `base64`, `xxd -p` and `fold` cut their output;
with the shapes of secrets also where some of its characters are escaped, in whatever way. All
pieces of a redacted stream together equal `hide` of the whole.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from typing import TypeAlias

from agent_core.guardrails.escaped_text import ESCAPE_SIGNS, read_layers
from agent_core.guardrails.secret_shapes import MAX_RUN, RUN, find_open_end, hide_shapes
from agent_core.guardrails.sign_search import has_any

MIN_CUT = 16
"""Minimum characters of a word that is found across line ends."""
MAX_HELD = 2 * MAX_RUN
"""Characters before the open end of a stream at which a word in a run may hold it back too."""
MIN_RELEASED = 256
"""Minimum characters of a very long run that a stream releases at once: each time costs."""
MAX_ESCAPED = 4
"""Times the length of the longest spelling that a word with escapes may have."""
_LINE_ENDS = str.maketrans("", "", "\r\n")
_LINE_END = re.compile(r"[\r\n]")


class Redactions:
    """Words to redact, each with its replacement. Of two at one place the longer one counts.
    `empty`: no words, and no shapes of secrets.

    Each word is searched for by itself: one regular expression of all of them, allowing line ends
    everywhere, takes seconds to compile for a few long keys.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._shapes = False
        self._with_shapes: Redactions | None = None
        given = {word: names[word] for word in sorted(names, key=len) if word}
        cut = {one: name for word, name in given.items() if _may_be_cut(one := _join(word))}
        self._cut = {word: cut[word] for word in sorted(cut, key=len)}
        self._whole = {word: name for word, name in given.items() if not _may_be_cut(_join(word))}
        self._sorted_cut, self._sorted_whole = sorted(self._cut), sorted(self._whole)
        self.empty = not given
        self._longest = max(map(len, given), default=0)
        first = re.escape("".join(sorted({word[0] for word in (*self._cut, *self._whole)})))
        self._first = re.compile(f"[{first}]") if given else None

    def with_shapes(self) -> "Redactions":
        """Return these redactions together with the shapes of secrets."""
        if self._with_shapes is None:
            self._with_shapes = copy(self)
            self._with_shapes._shapes, self._with_shapes.empty = True, False
        return self._with_shapes

    def hide(self, text: str) -> str:
        """`text` with names in place of the words."""
        hidden = self.hide_words(text)
        return hide_shapes(hidden) if self._shapes else hidden

    def hide_words(self, text: str) -> str:
        """`text` with names in place of the words alone, whatever else has a shape of secrets."""
        return _replace(text, self._find_spans(text))

    def hide_start(self, text: str, most: int) -> str:
        """Redact the first `most` characters of `text`, and some more; less is returned where a key
        goes on beyond them. The rest of a long text costs no time."""
        end = most + MAX_HELD
        return self.hide(text) if len(text) <= end else self.part(text[:end])[0]

    def part(self, text: str) -> tuple[str, str]:
        """Split `text` into its redacted beginning, and its end, which more text could make a word
        or a secret's shape."""
        if not self._shapes:
            return self._part_words(text)
        end = find_open_end(text)
        if end < MIN_RELEASED and _is_within_run(text, end):
            return "", text
        safe = self._leave_escaped(text, end)
        if not safe:
            return "", text
        spans, least = self._find_spans(text), safe - MAX_HELD
        begun = self._find_begun(text, spans)
        while (border := _find_border(spans, min(safe, begun))) < safe:
            safe = border  # the run before it is cut there: what is left of it may grow
            earlier = self._leave_escaped(text, find_open_end(text[:safe]))
            if earlier < least:
                break
            safe = earlier
        return hide_shapes(_replace(text[:safe], spans)), text[safe:]

    def _part_words(self, text: str) -> tuple[str, str]:
        spans = self._find_spans(text)
        end = self._find_begun(text, spans)
        return _replace(text[:end], spans), text[end:]

    def _find_begun(self, text: str, spans: list[tuple[int, int, str]]) -> int:
        """Return where the end of `text` begins that more text could make a word; `spans`: the
        words in it."""
        end = self._find_partial(text, 0)
        for start, stop, _ in _choose(spans):
            if start >= end:
                break  # a longer word may start before it
            if stop > end:
                end = self._find_partial(text, stop)
        return end

    def _find_spans(self, text: str) -> list[tuple[int, int, str]]:
        """Return all places of words, also overlapping ones, in that order."""
        joined = _join(text)
        ends = [] if joined is text else [found.start() for found in _LINE_END.finditer(text)]
        removed = [at - n for n, at in enumerate(ends)]  # positions of the line ends in `joined`
        spans = [(at, at + len(word), name) for word, name, at in _find_each(self._whole, text)]
        for word, name, at in _find_each(self._cut, joined):
            last = at + len(word) - 1
            start, stop = at + bisect_right(removed, at), last + bisect_right(removed, last) + 1
            spans.append((start, stop, name))
        if self._shapes and has_any(ESCAPE_SIGNS, text):
            spans += self._find_escaped(text)
        return sorted(spans, key=lambda span: (span[0], -span[1]))

    def _find_escaped(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield the places of words with escapes. Each is within one run of token characters: a
        stream waits for the end of a run."""
        for layer in read_layers(text):
            for words in (self._whole, self._cut):
                for word, name, at in _find_each(words, layer.text):
                    start, stop = layer.find_origin(at, at + len(word))
                    if RUN.issuperset(text[start:stop]):
                        yield start, stop, name

    def _leave_escaped(self, text: str, at: int) -> int:
        """Return the last place, `at` or before, that is not within a word with escapes."""
        if not _is_within_run(text, at):
            return at
        most = min(MAX_ESCAPED * self._longest, MAX_RUN)
        begin = max(0, at - most)
        spans = sorted(self._find_escaped(text[begin : at + most]))
        return begin + _find_border(spans, at - begin)

    def _find_partial(self, text: str, start: int) -> int:
        """Return where the end of `text` begins that more text could make a word, at `start` at the
        earliest."""
        if self._first is None:
            return len(text)
        for found in self._first.finditer(text, max(start, self._find_window(text))):
            end = text[found.start() :]
            if _is_begun(self._sorted_whole, end) or _is_begun(self._sorted_cut, _join(end)):
                return found.start()
        return len(text)

    def _find_window(self, text: str) -> int:
        """Return the start of the last characters that could be all of a word but one, line ends
        not counted."""
        begin, counted = len(text) - self._longest + 1, len(text)
        while (ends := len(_LINE_END.findall(text, max(begin, 0), counted))) and begin > 0:
            begin, counted = begin - ends, begin
        return max(begin, 0)


def _choose(spans: list[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Yield of overlapping words the first, of those with the same start the longest."""
    done = 0
    for start, stop, name in spans:
        if start >= done:
            yield start, stop, name
            done = stop


def _replace(text: str, spans: list[tuple[int, int, str]]) -> str:
    """Return `text` with names in place of the words; none lies across its end."""
    shown: list[str] = []
    at = 0
    for start, stop, name in _choose(spans):
        if start >= len(text):
            break
        shown += (text[at:start], name)
        at = stop
    return "".join((*shown, text[at:])) if shown else text


def _is_within_run(text: str, at: int) -> bool:
    return 0 < at < len(text) and RUN.issuperset(text[at - 1 : at + 1])


def _find_border(spans: list[tuple[int, int, str]], at: int) -> int:
    """Return the last place, `at` or before, that lies within none of the spans."""
    longest = max((stop - start for start, stop, _ in spans), default=0)
    for n in reversed(range(bisect_left(spans, (at,)))):
        start, stop, _ = spans[n]
        if start + longest <= at:
            break
        at = start if stop > at else at
    return at


def _join(text: str) -> str:
    return text.translate(_LINE_ENDS) if "\n" in text or "\r" in text else text


def _may_be_cut(joined: str) -> bool:
    return len(joined) >= MIN_CUT


def _find_each(words: Mapping[str, str], text: str) -> Iterator[tuple[str, str, int]]:
    """Yield (word, name, position) of all words in `text`, the shortest word first."""
    for word, name in words.items():
        if len(word) > len(text):
            return
        at = text.find(word)
        while at >= 0:
            yield word, name, at
            at = text.find(word, at + 1)


def _is_begun(words: list[str], text: str) -> bool:
    """Return True if one of the sorted words begins with `text` and is longer."""
    near = bisect_left(words, text)  # words that begin with it start here
    if near < len(words) and words[near] == text:
        near += 1
    return near < len(words) and words[near].startswith(text)


NOTHING = Redactions({})
"""No words are redacted."""
Hides: TypeAlias = Callable[[], Redactions]
"""Returns the current redactions; a stream keeps those it began with. May read a file."""


class StreamRedactor:
    """One redacted stream; `show` receives the visible text."""

    def __init__(self, words: Redactions, show: Callable[[str], None]) -> None:
        self._words, self._show = words, show
        self._held = ""

    def add(self, text: str) -> None:
        """Add text."""
        shown, self._held = self._words.part(self._held + text if self._held else text)
        if shown:
            self._show(shown)

    def end(self) -> None:
        """End the stream: show what was held back."""
        held, self._held = self._held, ""
        if held:
            self._show(self._words.hide(held))

    def drop(self) -> None:
        """Discard what was held back."""
        self._held = ""
