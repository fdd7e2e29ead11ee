"""Separates a model's words in a view, which may have markup, from the gateway's own."""

from collections.abc import Callable
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
    ReplyView,
    ReportView,
    SaidView,
    View,
)


def rewrite_written(view: View, rewrite: Callable[[str], str]) -> View:
    """`view` with its texts in markdown as `rewrite` has them."""
    match view:
        case ReplyView() | ReportView() | ChoiceCard() | FormCard():
            return replace(view, text=rewrite(view.text))
        case Media():
            return replace(view, caption=rewrite(view.caption))
        case Activity():
            return replace(view, words=rewrite(view.words))
        case ApprovalCard() | Notice() | PlanView() | SaidView():
            return view
    assert_never(view)
