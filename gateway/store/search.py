"""Finding a conversation by its words: each must occur, in any order and case, in its title or in
what people see of it. Both stores ask here, so that both find the same."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import assert_never

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
"""How many of a person's newest conversations are looked through."""
PIECE = 256
"""Rows that are looked at together."""
ESCAPED = re.compile(r'[\x00-\x1f"\\\x7f]')


def miss(
    words: frozenset[str],
    title: str,
    pieces: Iterable[Sequence[bytes]],
    read: Callable[[bytes], str],
) -> frozenset[str]:
    """Those of the words that neither the title holds nor the texts."""
    return seek(_drop_found(words, title.casefold()), pieces, read)


def seek(
    missing: frozenset[str], pieces: Iterable[Sequence[bytes]], read: Callable[[bytes], str]
) -> frozenset[str]:
    """Those of the folded words that none of the texts holds that `read` finds in stored rows.
    Reads no more than it must: a row without the word is not taken apart."""
    for bodies in pieces:
        if not missing:
            break
        if not _find_stored_words(missing, bodies):
            continue
        for body in bodies:
            if _find_stored_words(missing, (body,)):
                missing = _drop_found(missing, read(body).casefold())
    return missing


def may_hold(words: frozenset[str], bodies: Sequence[bytes]) -> bool:
    """False if one of the folded words is surely in none of the stored rows."""
    return len(_find_stored_words(words, bodies)) == len(words)


def _drop_found(missing: frozenset[str], folded: str) -> frozenset[str]:
    return frozenset(word for word in missing if word not in folded)


def _find_stored_words(words: frozenset[str], bodies: Sequence[bytes]) -> frozenset[str]:
    """Those of the words that occur in the rows as they are stored. JSON keeps a text as it is but
    for signs that are escaped: of these words only what stands before and after them is sought."""
    stored = b"\n".join(bodies)
    if stored.isascii():  # most of what is stored: no copy of it as text is made
        lower = stored.lower()
        return frozenset(
            word
            for word in words
            if all(part.encode(errors="replace") in lower for part in _split_escaped(word))
        )
    folded = stored.decode().casefold()
    return frozenset(word for word in words if all(part in folded for part in _split_escaped(word)))


def _split_escaped(word: str) -> list[str]:
    """The parts of a word that JSON writes as they are."""
    return ESCAPED.split(word)


def visible_text(view: View) -> str:
    """All words of a view that people read."""
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
