"""Finding a conversation by its words: each must occur, in any order and case, in its title or in
what people see of it. Both stores ask here, so that both find the same."""

from collections.abc import Iterable
from typing import assert_never

from gateway.views import (
    Activity,
    ApprovalCard,
    ChoiceCard,
    FormCard,
    Media,
    Notice,
    PlanView,
    Reply,
    Report,
    Said,
    View,
)

MOST_SEARCHED = 500
"""How many of a person's newest conversations are looked through."""
MOST_WORDS = 8


def wanted(words: str) -> frozenset[str]:
    """What to look for."""
    return frozenset(words.casefold().split()[:MOST_WORDS])


def holds(missing: frozenset[str], title: str, views: Iterable[View]) -> bool:
    """The title and the views together hold all that is `missing`; reads no more than it must."""
    missing = _without(missing, title)
    for view in views:
        if not missing:
            return True
        missing = _without(missing, shown_text(view))
    return not missing


def _without(missing: frozenset[str], text: str) -> frozenset[str]:
    folded = text.casefold()
    return frozenset(word for word in missing if word not in folded)


def shown_text(view: View) -> str:
    """All words of a view that people read."""
    match view:
        case Reply() | Notice() | Said():
            return view.text
        case ChoiceCard() | FormCard():
            return f"{view.text} {view.outcome}"
        case Report():
            return f"{view.title} {view.text}"
        case Activity():
            lines = (f"{line.tool} {line.summary} {line.output}" for line in view.lines)
            return " ".join((view.words, *lines))
        case ApprovalCard():
            asked = (f"{one.tool} {one.arguments} {one.reason}" for one in view.proposals)
            return " ".join((*asked, view.outcome))
        case PlanView():
            return " ".join((view.title, *(f"{step.text} {step.note}" for step in view.steps)))
        case Media():
            return " ".join((view.caption, *(file.name for file in view.files)))
        case _:
            assert_never(view)
