"""Earlier conversations as the agent's tool session_search finds them."""

from agent_core.memory.past import PastTalk
from gateway.features.history.resume import PastDeps, look_for
from gateway.folded_text import find_first
from gateway.messages import Conversation, Sender
from gateway.ports import parse_words

AROUND = 1_500
"""Characters that are shown on each side of a place that holds a word."""
MAX_TEXT = 6_000
"""Characters of one part."""


async def search_past(
    deps: PastDeps, where: Conversation, sender: Sender, words: str
) -> tuple[PastTalk, ...]:
    """Return the best parts for `words` that may be shown to the sender at `where`."""
    found = await look_for(deps, where, sender, words)
    return tuple(
        PastTalk(title=part.title, at=part.at, text=cut_around(part.text, words))
        for part in (one.part for one in found)
    )


def cut_around(text: str, words: str) -> str:
    """Cut `text` around the first occurrences of the words; without words return its beginning."""
    if len(text) <= MAX_TEXT:
        return text
    first = (find_first(text, (word,)) or (0, 0) for word in parse_words(words))
    places = sorted(start for start, _ in first) or [0]
    spans: list[tuple[int, int]] = []
    for place in places:
        start, end = max(0, place - AROUND), min(len(text), place + AROUND)
        if spans and start <= spans[-1][1]:
            start = spans.pop()[0]
        spans.append((start, end))
    pieces = (
        f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
        for start, end in spans
    )
    return "\n".join(pieces)[:MAX_TEXT]
