"""The model's words in a view, which may have markup and be long, apart from the gateway's own and
from those in a line, in which signs that deceive are shown as codes."""

from collections.abc import Callable
from typing import assert_never

from msgspec.structs import replace

from adapters.text import AHEAD
from gateway.moment_texts import map_words
from gateway.texts.signs import visible
from gateway.views import (
    Activity,
    ApprovalCard,
    Button,
    ChoiceCard,
    FormCard,
    Media,
    Notice,
    PlanView,
    ReplyView,
    ReportView,
    SaidView,
    ToolLine,
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


def show_signs(view: View) -> View:
    """`view` with signs that hide or reorder text shown as codes in what people decide by: a plan,
    titles, notes, buttons, the calls of an answer, and what became of a question."""
    match view:
        case PlanView():
            steps = tuple(
                replace(one, text=_show(one.text), note=_show(one.note)) for one in view.steps
            )
            shown = replace(view, title=_show(view.title), steps=steps, outcome=_show(view.outcome))
            return replace(shown, buttons=_show_labels(view.buttons))
        case Activity():
            lines = tuple(_show_line(one) for one in view.lines)
            return replace(view, note=_show(view.note), lines=lines)
        case ReplyView():
            return replace(view, note=_show(view.note))
        case ReportView():
            return replace(view, title=_show(view.title), note=_show(view.note))
        case ChoiceCard():
            return replace(view, outcome=_show(view.outcome), buttons=_show_labels(view.buttons))
        case FormCard() | ApprovalCard():
            return replace(view, outcome=_show(view.outcome))
        case Media() | Notice() | SaidView():
            return view
    assert_never(view)


def _show(text: str) -> str:
    return text if text.isascii() else map_words(text, visible)


def _show_line(line: ToolLine) -> ToolLine:
    if line.summary.isascii() and line.tool.isascii():
        return line
    return replace(line, summary=_show(line.summary), tool=_show(line.tool))


def _show_labels(buttons: tuple[Button, ...]) -> tuple[Button, ...]:
    return tuple(replace(one, label=_show(one.label)) for one in buttons)


def shorten_growing(view: View, limit: int) -> View:
    """Return a growing answer without its end, which changes nothing in its first message of
    `limit` characters; at each new word all of it would be read."""
    if isinstance(view, ReplyView) and view.state == "streaming" and len(view.text) > AHEAD * limit:
        return replace(view, text=view.text[: AHEAD * limit])
    return view
