"""Searches conversations: each word must occur, in any order, case and form, in the title or in a
view's visible text.

Both stores use it, so that both find the same.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import assert_never

from gateway.folded_text import fold_text
from gateway.views import (
    Activity,
    ApprovalCard,
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

MAX_SEARCHED = 500
"""Number of a person's newest conversations that are searched."""
PIECE = 128
"""Rows that are looked at together."""
ESCAPED = re.compile(r'[\x00-\x1f"\\\x7f]')


def miss(
    words: frozenset[str],
    title: str,
    pieces: Iterable[Sequence[bytes]],
    read: Callable[[bytes], str],
) -> frozenset[str]:
    """Return those of the words that neither the title nor the texts contain."""
    return seek(_drop_found(words, fold_text(title)), pieces, read)


def seek(
    missing: frozenset[str], pieces: Iterable[Sequence[bytes]], read: Callable[[bytes], str]
) -> frozenset[str]:
    """Return those of the folded words that occur in none of the texts that `read` finds in stored
    rows. Only rows that contain a word are decoded."""
    for bodies in pieces:
        if not missing:
            break
        if not _find_stored_words(missing, bodies):
            continue
        for body in bodies:
            if _find_stored_words(missing, (body,)):
                missing = _drop_found(missing, fold_text(read(body)))
    return missing


def may_hold(words: frozenset[str], bodies: Sequence[bytes]) -> bool:
    """Return False if one of the folded words certainly occurs in none of the stored rows."""
    return len(_find_stored_words(words, bodies)) == len(words)


def _drop_found(missing: frozenset[str], folded: str) -> frozenset[str]:
    return frozenset(word for word in missing if word not in folded)


def _find_stored_words(words: frozenset[str], bodies: Sequence[bytes]) -> frozenset[str]:
    """Return those of the words that may occur in the rows as stored. JSON keeps a text except for
    escaped characters: only the parts of a word between these are searched."""
    stored = b"\n".join(bodies)
    if stored.isascii():  # no text copy is made of most of the stored data
        lower = stored.lower()
        return frozenset(
            word
            for word in words
            if all(part.encode(errors="replace") in lower for part in _split_escaped(word))
        )
    folded = fold_text(stored.decode())
    return frozenset(word for word in words if all(part in folded for part in _split_escaped(word)))


def _split_escaped(word: str) -> list[str]:
    """The parts of a word that JSON writes as they are."""
    return ESCAPED.split(word)


def visible_text(view: View) -> str:
    """Return all text of a view that people read."""
    match view:
        case ReplyView() | Notice() | SaidView():
            return view.text
        case ChoiceCard() | FormCard():
            return f"{view.text} {view.outcome}"
        case ReportView():
            return f"{view.title} {view.text}"
        case Activity():
            lines = (f"{line.tool} {line.summary} {line.output}" for line in view.lines)
            return " ".join((view.words, *lines, view.note))
        case ApprovalCard():
            asked = (f"{one.tool} {one.arguments} {one.reason}" for one in view.proposals)
            return " ".join((*asked, view.outcome))
        case PlanView():
            return " ".join((view.title, *(f"{step.text} {step.note}" for step in view.steps)))
        case Media():
            return " ".join((view.caption, *(file.name for file in view.files)))
        case _:
            assert_never(view)
