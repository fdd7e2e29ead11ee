"""Chooses a request's route by rules alone, without a model.

The rules in order: research mode; a mode of its own (app, code, image, slide, data) is simple; one
short sentence is simple; a sequence of steps or several kinds of work together are complex;
everything else is simple. The patterns are data (`patterns`).
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
"""Modes as people may write them, with older names of agents."""
DIRECT: tuple[Mode, ...] = ("app", "code", "image", "slide")
"""Modes whose first round is the call of a skill."""
SHORT_WORDS = 12
MANY_WORKS = 3
READ = 1_000
"""Characters that are looked at: who wants several steps says so at the beginning."""

_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SENTENCE = re.compile(r"[.!?…](?=\s)|[。！？\n](?=[\s\S])")
"""Matches the end of a sentence that is not the last one, in a text without blanks at its end."""
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
    """Return True for one sentence of few words; two characters count as a word in languages
    without spaces."""
    if len(text) > 30 * most:
        return False
    dense = len(_DENSE.findall(text))
    words = len(text.split()) if dense < len(text) // 3 else (dense + 1) // 2
    return words <= most and _SENTENCE.search(text) is None


class _Language:
    """One language's compiled patterns."""

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
    """Return all languages, compiled at the first use, so that the start is not delayed."""
    return tuple(_Language(patterns) for patterns in LANGUAGES.values())
