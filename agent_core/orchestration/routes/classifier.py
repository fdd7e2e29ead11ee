"""Which way a request takes, decided by rules alone: no model is called.

The rules in their order: research mode; a mode of its own (app, code, image, slide, data) is
simple; one short sentence is simple; a sequence of steps or several kinds of work together are
complex; all else is simple. What steps and work look like is data (`patterns`).
"""

import re
from functools import cache
from typing import Literal

from agent_core.orchestration.routes.patterns import LANGUAGES, Patterns

Route = Literal["simple", "complex", "research"]
Mode = Literal["task", "research", "data", "app", "code", "image", "slide"]

MODES: dict[str, Mode] = {
    **{name: name for name in ("task", "research", "data", "app", "code", "image", "slide")},
    "writing": "task",
}
"""What people may write, with the older names of agents, and what it means."""
DIRECT: tuple[Mode, ...] = ("app", "code", "image", "slide")
"""Modes whose first round is the call of a skill."""
SHORT_WORDS = 12
MANY_WORKS = 3
READ = 1_000
"""Characters that are looked at: who wants several steps says so at the beginning."""

_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SENTENCE = re.compile(r"[.!?…](?=\s)|[。！？\n](?=[\s\S])")
"""The end of a sentence that is not the last one, in a text without blanks at its end."""
_LISTED = re.compile(r"^[ \t]*(?:\d{1,2}[.)]|[-*•])\s+\S", re.MULTILINE)


def classify(text: str, mode: Mode = "task", short: int = SHORT_WORDS) -> Route:
    """The route for `text`. `short`: words that one sentence may have to be simple."""
    if mode == "research":
        return "research"
    if mode != "task" or _is_short(text.strip(), short):
        return "simple"
    head = text[:READ]
    several = len(_LISTED.findall(head)) >= 3 or any(
        one.asks_for_several(head) for one in _read_languages()
    )
    return "complex" if several else "simple"


def _is_short(text: str, most: int) -> bool:
    """One sentence of few words; two signs count as a word where words are not parted."""
    if len(text) > 30 * most:
        return False
    dense = len(_DENSE.findall(text))
    words = len(text.split()) if dense < len(text) // 3 else (dense + 1) // 2
    return words <= most and _SENTENCE.search(text) is None


class _Language:
    """One language's patterns, ready to be searched."""

    def __init__(self, patterns: Patterns) -> None:
        self._opens = _match_any(patterns.openers, patterns.spaced)
        self._follows = _match_any(patterns.followers, patterns.spaced)
        self._phrase = _match_any(patterns.phrases, patterns.spaced)
        self._works = tuple(_match_any((work,), patterns.spaced) for work in patterns.works)
        self._numbered = re.compile(rf"(?:{'|'.join(patterns.step)})\s*([1-9１-９])", re.IGNORECASE)

    def asks_for_several(self, text: str) -> bool:
        """`text` asks for several steps, or for several kinds of work."""
        follows = self._follows.findall(text)
        if follows:
            opener = self._opens.search(text)
            if len(follows) > 1 or (opener and self._follows.search(text, opener.end())):
                return True
        if self._phrase.search(text) or len(set(self._numbered.findall(text))) > 1:
            return True
        return sum(work.search(text) is not None for work in self._works) >= MANY_WORKS


def _match_any(patterns: tuple[str, ...], spaced: bool) -> re.Pattern[str]:
    either = "|".join(patterns)
    return re.compile(rf"(?<!\w)(?:{either})(?!\w)" if spaced else either, re.IGNORECASE)


@cache
def _read_languages() -> tuple[_Language, ...]:
    """All that are known, compiled with the first use: a start waits for nothing."""
    return tuple(_Language(patterns) for patterns in LANGUAGES.values())
