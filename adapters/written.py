"""The model's words in a view, which may have markup and be long, apart from the gateway's own."""

from collections.abc import Callable
from typing import assert_never

from msgspec.structs import replace

from adapters.text import AHEAD
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


def shorten_growing(view: View, limit: int) -> View:
    """Return a growing answer without its end, which changes nothing in its first message of
    `limit` characters; at each new word all of it would be read."""
    if isinstance(view, ReplyView) and view.state == "streaming" and len(view.text) > AHEAD * limit:
        return replace(view, text=view.text[: AHEAD * limit])
    return view
