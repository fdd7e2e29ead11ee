"""The parts of a conversation between one /new and the next, and the search in them."""

from collections.abc import Iterable
from math import log
from typing import Literal

from msgspec import Struct

from agent_core.context.data_marks import strip_marks
from agent_core.context.surroundings import strip_surroundings
from agent_core.memory.recall import strip_recalled
from agent_core.messages import text_of
from gateway.folded_text import find_first, fold_text
from gateway.ports import parse_words
from gateway.store.rows import Spans, TranscriptRow
from gateway.store.spans import append_row

TITLE = 60
AROUND = 60
"""Characters that an excerpt shows on each side of the first word that was found."""
IN_TITLE = 3
"""Weight of a word in the title."""


class ThreadPart(Struct, frozen=True, kw_only=True):
    """One part: its words, its end, and the history that the model saw then. `current`: it has not
    ended."""

    conversation: str
    title: str
    text: str
    at: float
    shows: Spans
    current: bool


class Found(Struct, frozen=True, kw_only=True):
    """A part that holds all words, with the place of the rarest one."""

    part: ThreadPart
    excerpt: str


class _Open:
    """The part being read."""

    def __init__(self) -> None:
        self.shows: Spans = ()
        self.said: dict[str, list[tuple[Literal["user", "assistant", "tool"], str]]] = {}
        self.at = 0.0

    def add(self, row: TranscriptRow) -> None:
        texts = [
            (one.role, strip_marks(strip_recalled(strip_surroundings(text_of(one)))))
            for one in row.messages
        ]
        self.said[row.turn] = [(role, text) for role, text in texts if text]
        self.at = row.at or self.at

    def close(self, conversation: str, current: bool) -> list[ThreadPart]:
        said = [line for lines in self.said.values() for line in lines]
        if not said or not self.shows:
            return []
        asked = next((text for role, text in said if role == "user"), said[0][1])
        part = ThreadPart(
            conversation=conversation,
            title=_line(asked, TITLE),
            text="\n".join(text for _, text in said),
            at=self.at,
            shows=self.shows,
            current=current,
        )
        return [part]


def parts_of(conversation: str, rows: Iterable[TranscriptRow]) -> list[ThreadPart]:
    """Return the parts in `rows`, newest first. Undone turns are in none."""
    parts: list[ThreadPart] = []
    part = _Open()
    for row in rows:
        match row.kind:
            case "turn":
                part.add(row)
                part.shows = append_row(part.shows, row.n)
            case "undone":
                part.said.pop(row.turn, None)
                part.shows = row.shows
            case "summary":
                part.shows = row.shows
            case "new" | "resumed":
                parts += part.close(conversation, current=False)
                part = _Open()
                part.shows = row.shows
    parts += part.close(conversation, current=True)
    return parts[::-1]


def search(parts: list[ThreadPart], words: str, limit: int) -> list[Found]:
    """Return the parts that contain all of `words`, best first (Okapi BM25); without words the
    newest."""
    terms = sorted(parse_words(words))
    if not terms:
        newest = sorted(parts, key=lambda part: -part.at)[:limit]
        return [Found(part=part, excerpt="") for part in newest]
    texts = [fold_text(part.text) for part in parts]
    titles = [fold_text(part.title) for part in parts]
    mean = sum(map(len, texts)) / max(1, len(texts))
    hits = {term: [text.count(term) for text in texts] for term in terms}
    weight = {term: _rarity(len(parts), sum(map(bool, hits[term]))) for term in terms}
    rarest = max(terms, key=lambda term: weight[term])
    scored: list[tuple[float, float, int]] = []
    for n, text in enumerate(texts):
        if not all(hits[term][n] for term in terms):
            continue
        score = 0.0
        for term in terms:
            often = hits[term][n] + IN_TITLE * titles[n].count(term)
            score += weight[term] * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * len(text) / mean))
        scored.append((score, parts[n].at, n))
    best = [n for _, _, n in sorted(scored, reverse=True)[:limit]]
    return [Found(part=parts[n], excerpt=_excerpt(parts[n].text, rarest)) for n in best]


def _rarity(count: int, holding: int) -> float:
    return log(1 + (count - holding + 0.5) / (holding + 0.5))


def _excerpt(text: str, word: str) -> str:
    first, after = find_first(text, (word,)) or (0, 0)
    start, end = max(0, first - AROUND), after + AROUND
    line = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{line}{'…' if end < len(text) else ''}"


def _line(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most].rpartition(' ')[0] or line[:most]}…"
