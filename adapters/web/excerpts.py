"""The line of a conversation that a search found, and its view. Pure."""

from collections.abc import Sequence
from typing import TypeAlias

from adapters.web.wire import Excerpt
from gateway.command_texts import drop_marks
from gateway.folded_text import find_first, fold_text, split_at
from gateway.ports import Shown
from gateway.views import (
    Activity,
    ChoiceCard,
    FormCard,
    Media,
    Notice,
    PlanView,
    ReplyView,
    ReportView,
    SaidView,
    View,
)

BEFORE, LENGTH = 30, 140
"""Characters of the line before the first word found, and of the whole excerpt."""


Hit: TypeAlias = tuple[int, Shown, str]
"""A line with words that were sought: their number, its view, and the line."""


def find_hit(shown: Sequence[Shown], sought: frozenset[str], best: Hit | None) -> Hit | None:
    """Return the line with most of the words, the newest of several; `best`, of newer views, if
    none has more."""
    for one in reversed(shown):
        for line in _list_lines(one.view):
            folded = fold_text(line)
            count = sum(word in folded for word in sought)
            if count > (best[0] if best else 0):
                best = count, one, line
        if best is not None and best[0] == len(sought):
            break
    return best


def make_excerpt(conversation: str, hit: Hit, sought: frozenset[str]) -> Excerpt:
    """Make the excerpt that shows a hit."""
    _, shown, line = hit
    text = _cut(line, sought)
    return Excerpt(
        conversation=conversation,
        turn=shown.turn,
        name=shown.name,
        text=text,
        parts=split_at(text, sought),
    )


def _list_lines(view: View) -> Sequence[str]:
    match view:
        case ReplyView() | SaidView() | Notice() | ChoiceCard() | FormCard():
            text = view.text
        case ReportView():
            text = f"{view.title}\n{view.text}"
        case Media():
            text = view.caption
        case Activity():
            text = "\n".join((view.words, *(f"{one.summary}\n{one.output}" for one in view.lines)))
        case PlanView():
            text = "\n".join((view.title, *(one.text for one in view.steps)))
        case _:
            return ()
    return drop_marks(text).splitlines()


def _cut(line: str, sought: frozenset[str]) -> str:
    """The part of the line around the first word."""
    first, _ = find_first(line, sought) or (0, 0)
    start = max(0, first - BEFORE)
    end = start + LENGTH
    return f"{'…' if start else ''}{line[start:end].strip()}{'…' if end < len(line) else ''}"
