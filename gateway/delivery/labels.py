"""A word on what is in doubt, where the view that it is about can show one."""

from typing import assert_never

from msgspec.structs import replace

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


def labelled(view: View, note: str) -> View:
    """`view` with a word on what is in doubt."""
    match view:
        case Reply() | Report():
            return replace(view, note=f"{view.note} {note}".strip())
        case Media():
            return replace(view, caption=f"{view.caption}\n{note}".strip())
        case Notice() | ChoiceCard() | FormCard():
            return replace(view, text=f"{view.text}\n{note}")
        case Activity():
            return replace(view, words=f"{view.words}\n{note}".strip())
        case ApprovalCard() | PlanView():
            return replace(view, outcome=f"{view.outcome}\n{note}".strip())
        case Said():
            return view
    assert_never(view)
