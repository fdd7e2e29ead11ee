"""Ranks tools by a query: by the words they share, rare ones weighing more."""

import math
import re
from collections import Counter
from collections.abc import Iterable

from agent_core.models.port import ToolSpec

_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
NAMED = 3.0
"""A word in the name counts so many times one in the description."""
MIN_STEM = 4
"""Letters that two words must begin with alike to count as one word's forms."""


def rank(query: str, specs: Iterable[ToolSpec], most: int) -> tuple[ToolSpec, ...]:
    """Return at most `most` of the best `specs`; those that share no word with `query` are left
    out."""
    known = [(spec, _words(spec.name), _words(spec.description)) for spec in specs]
    often = Counter(word for _, name, about in known for word in {*name, *about})
    scored = []
    for nth, (spec, name, about) in enumerate(known):
        score = sum(_weight(word, name, about, often, len(known)) for word in _words(query))
        score += 100.0 if query.strip().lower() == spec.name.lower() else 0.0
        if score > 0:
            scored.append((-score, nth, spec))
    scored.sort(key=lambda one: one[:2])
    return tuple(spec for _, _, spec in scored[:most])


def _weight(
    word: str, name: Iterable[str], about: Iterable[str], often: Counter[str], count: int
) -> float:
    """Return the weight of `word` of the query for a tool: more if few tools have it."""
    best = 0.0
    for worth, words in ((NAMED, name), (1.0, about)):
        for other in words:
            if (match := _compare_words(word, other)) > 0:
                best = max(best, worth * match * math.log(1 + count / often[other]))
    return best


def _compare_words(one: str, other: str) -> float:
    if one == other:
        return 1.0
    short, long = sorted((one, other), key=len)
    return 0.6 if len(short) >= MIN_STEM and long.startswith(short) else 0.0


def _words(text: str) -> tuple[str, ...]:
    parted = _HUMP.sub(" ", text[:2_000])
    return tuple(dict.fromkeys(word.lower() for word in _WORD.findall(parted)))
