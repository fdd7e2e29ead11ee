"""Folds texts for searches: 'Häuser', 'HÄUSER', 'hauser' and a decomposed 'häuser' are the same.

Case, compatibility forms and the accents of Latin, Greek and Cyrillic letters are removed; marks of
other scripts make other letters and stay. A text of ASCII costs no more than `lower`, another one
little more than `casefold`: only the few characters that change are replaced.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

MAX_REPLACED = 64
"""Different characters that are replaced one after another; more are translated together."""
_ACCENTS = re.compile("[\u0300-\u036f]+")
_ASCII = bytes(range(128))
_FOLDABLE = re.compile(
    "[\u00a0-\u0233\u02b0-\u036f\u037a\u0384-\u0385\u03ac-\u03af\u03ca-\u03ce\u03d2-\u03d4\u03f2"
    "\u0439\u0450-\u0453\u0457\u045c-\u045e\u0477\u04c2\u04d1-\u04d3\u04d7\u04db-\u04df"
    "\u04e3-\u04e7\u04eb-\u04f5\u04f9\u0675-\u0678\u0e33\u0eb3-\u0f0c\u0f77-\u0f79\u10fc"
    "\u1d2c-\u1dbf\u1e01-\u22ed\u2460-\u24ea\u2a0c-\u2adc\u2c7c-\u2d6f\u2e9f-\u2fd5\u3000"
    "\u3036-\u303a\u309b-\u309f\u30ff-\u33ff\ua69c-\ua7f9\uab5c-\uab69\ufb20-\uffee"
    "\U00010781-\U000107ba\U0001d400-\U0001d7ff\U0001ee00-\U0001eebb\U0001f100-\U0001f251"
    "\U0001fbf0-\U0001fbf9]"
)
"""Ranges with all characters that `_fold_one` changes, and few that common scripts use else."""
_STROKES = str.maketrans("ıłøđ", "ilod")
"""Letters whose stroke or missing dot Unicode does not count as an accent: ı ł ø đ."""


def fold_text(text: str) -> str:
    """Return the form of a text in which a search finds it; folded twice it stays the same."""
    if text.isascii():
        return text.lower()
    folded = text.casefold()
    strange = folded.encode(errors="ignore").translate(None, _ASCII).decode()
    foldable = ((one, _fold_one(one)) for one in set(_FOLDABLE.findall(strange)))
    changed = {one: plain for one, plain in foldable if plain != one}
    if len(changed) > MAX_REPLACED:
        folded = folded.translate({ord(one): plain for one, plain in changed.items()})
    else:
        for one, plain in changed.items():
            folded = folded.replace(one, plain)
    return unicodedata.normalize("NFC", folded)


def find_first(text: str, words: Iterable[str]) -> tuple[int, int] | None:
    """Return the first place of one of the folded words in `text`, as indices of `text`."""
    found = _pattern(frozenset(words)).search(fold_text(text))
    return _unfold(text, found.span()) if found else None


def split_at(text: str, words: Iterable[str]) -> tuple[str, ...]:
    """Split a text at the folded words: each second part is such a word as it is written."""
    parts, end = [], 0
    for found in _pattern(frozenset(words)).finditer(fold_text(text)):
        start, after = _unfold(text, found.span())
        if start >= end:
            parts += [text[end:start], text[start:after]]
            end = after
    return (*parts, text[end:])


@lru_cache(maxsize=4_096)
def _fold_one(char: str) -> str:
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", char)).casefold()
    return unicodedata.normalize("NFC", plain.translate(_STROKES))


@lru_cache(maxsize=64)
def _pattern(words: frozenset[str]) -> re.Pattern[str]:
    """Longer words first; without words it matches nothing."""
    longest = sorted(filter(None, words), key=lambda word: (-len(word), word))
    return re.compile("|".join(map(re.escape, longest)) or "(?!)")


def _unfold(text: str, span: tuple[int, int]) -> tuple[int, int]:
    """Convert a span of the folded text to one of the text, with all accents of its last letter."""
    start, end = span
    if text.isascii():
        return span
    first = _count_before(text, start)
    last = _count_before(text, end)
    whole = len(fold_text(text[:last])) == end
    return first, last if whole else last + 1


def _count_before(text: str, at: int) -> int:
    """Return the number of characters that fold to at most the first `at` ones."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if len(fold_text(text[:middle])) <= at:
            low = middle
        else:
            high = middle - 1
    return low
