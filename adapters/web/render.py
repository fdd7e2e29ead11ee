"""Renders views for the page: the view itself, and its Markdown as harmless HTML. Pure.

Raw HTML is text, links lead only to http, https and mail, images are links (a model cannot make a
browser load anything). A command in a text of ours is a button, which nothing written by people or
models can be. markdown-it is imported on the first use.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, cast

from msgspec import Struct
from msgspec.structs import replace

from adapters.calls import CallDescription, DecidedLine, describe_call, fold_decided
from adapters.formulas import mark_formulas
from adapters.links import tell_targets
from adapters.written import show_signs
from gateway.command_texts import (
    MARKED,
    OPENS,
    drop_marks,
    find_commands,
    write_in_view,
    write_line,
)
from gateway.moment_texts import Moment, drop_moments, has_moment, split_moments
from gateway.ports import Shown
from gateway.texts.call_lines import head_line
from gateway.texts.signs import visible
from gateway.views import (
    Activity,
    ApprovalCard,
    ChoiceCard,
    FormCard,
    Media,
    Notice,
    ReplyView,
    ReportView,
    View,
)

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

SCHEMES = ("http://", "https://", "mailto:")
ADDRESS = re.compile(r"https?://[^\s<>\"'`|\\]+")
AFTER = ".,;:!?*_~'\"“”„‘’‚«»‹›…。，、；：！？"
"""Characters that end a sentence, not an address."""
OPENED = {")": "(", "]": "[", "）": "（", "」": "「", "』": "『", "】": "【"}
TASKS = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
LINK = {"target": "_blank", "rel": "noopener noreferrer nofollow"}


class RenderedView(Struct, frozen=True, kw_only=True):
    """A shown view for the API; `html` is its Markdown, "" for none. `calls`: those of an approval,
    for people. `decided`: its one line once it is decided. `moments`: those named in `words`, for
    the reader's own time."""

    rev: int
    turn: str
    name: str
    position: int
    at: float
    view: View
    html: str
    calls: tuple[CallDescription, ...] = ()
    decided: DecidedLine | None = None
    moments: tuple[Moment, ...] = ()


def draw(shown: Shown) -> RenderedView:
    """Render `shown` for the page. About 2 ms for each KB of Markdown: use a thread."""
    return RenderedView(
        rev=shown.rev,
        turn=shown.turn,
        name=shown.name,
        position=shown.position,
        at=shown.at,
        view=_show_hidden(show_signs(write_in_view(shown.view))),
        html=_html(shown.view),
        calls=_describe_calls(shown.view),
        decided=_fold(shown.view),
        moments=_find_moments(shown.view),
    )


def _find_moments(view: View) -> tuple[Moment, ...]:
    texts = tuple(getattr(view, name, "") for name in ("text", "outcome", "note"))
    if not any(map(has_moment, texts)):
        return ()
    found = (one for text in texts for one in split_moments(text))
    return tuple(dict.fromkeys(one for one in found if isinstance(one, Moment)))


def _describe_calls(view: View) -> tuple[CallDescription, ...]:
    if not isinstance(view, ApprovalCard):
        return ()
    return tuple(describe_call(one, view.language) for one in view.proposals)


def _fold(view: View) -> DecidedLine | None:
    if not isinstance(view, ApprovalCard) or view.state == "open":
        return None
    decided = fold_decided(view)
    return replace(decided, outcome=drop_moments(decided.outcome))


def _show_hidden(view: View) -> View:
    """Show the hidden characters of an approval, the arguments unchanged; name the tools of lines
    for people."""
    if isinstance(view, Activity):
        lines = (
            replace(one, tool=head_line(one.tool, one.summary, view.language)) for one in view.lines
        )
        return replace(view, lines=tuple(lines))
    if not isinstance(view, ApprovalCard):
        return view
    proposals = tuple(
        replace(
            one,
            tool=visible(one.tool),
            reason=visible(one.reason),
            detail=visible(one.detail),
            preview=visible(one.preview, exact=True),
        )
        for one in view.proposals
    )
    rule, here, asker = visible(view.rule), visible(view.here), visible(view.asker)
    return replace(view, proposals=proposals, rule=rule, here=here, asker=asker)


def _html(view: View) -> str:
    """The view's markdown as HTML; a model's answer offers no command."""
    ours = isinstance(view, Notice | ChoiceCard | FormCard)
    return to_html(drop_moments(_markdown(view))) if ours else draw_answer(_markdown(view))


def draw_answer(markdown: str) -> str:
    """Render a model's text as HTML, without commands."""
    return to_html(mark_formulas(drop_marks(markdown)))


def to_html(markdown: str) -> str:
    """`markdown` as HTML that loads nothing; it runs nothing but a command of a text of ours."""
    return cast(str, _parser().render(tell_targets(markdown))) if markdown else ""


def _markdown(view: View) -> str:
    match view:
        case ReplyView() | ReportView() | ChoiceCard() | FormCard() | Notice():
            return view.text
        case Media(caption=caption):
            return caption
        case Activity(words=words):
            return words
        case _:
            return ""


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "breaks": True})
    parser.enable(["table", "strikethrough"])
    parser.validateLink = _may_lead_to  # type: ignore[method-assign]
    parser.core.ruler.push("tasks", _tasks)
    parser.core.ruler.push("addresses", _addresses)
    parser.core.ruler.push("commands", _commands)
    parser.add_render_rule("link_open", _link_open)
    parser.add_render_rule("image", _image)
    parser.add_render_rule("td_open", _cell)
    parser.add_render_rule("th_open", _cell)
    parser.render("x")  # compiles its rules, so that threads may share it
    return parser


def _may_lead_to(url: str) -> bool:
    return url.strip().lower().startswith(SCHEMES)


def _tasks(state: "StateCore") -> None:
    """A point of a list that begins with [ ] or [x] shows whether it is done."""
    for item, _, words in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        first = words.children[0] if item.type == "list_item_open" and words.children else None
        if first is not None and first.type == "text" and first.content[:4] in TASKS:
            first.content = TASKS[first.content[:4]] + first.content[4:]
            item.attrs["class"] = "task"


def _addresses(state: "StateCore") -> None:
    """Link a bare address in the text to itself."""
    for token in state.tokens:
        if token.children and "://" in token.content:
            token.children = list(_mark_links(token.children))


def _commands(state: "StateCore") -> None:
    """A command of a text of ours becomes a button."""
    for token in state.tokens:
        if token.children and OPENS in token.content:
            token.children = [made for one in token.children for made in _make_buttons(one)]


def _make_buttons(token: "Token") -> "Iterator[Token]":
    """A text's words and commands; elsewhere, as in code, a command stays words."""
    from markdown_it.token import Token

    if token.type != "text":
        token.content = drop_marks(token.content)
        yield token
        return
    at = 0
    for found in MARKED.finditer(token.content):
        (command,) = find_commands(found[0])
        line = write_line(command)
        attrs: dict[str, str | int | float] = {
            "type": "button",
            "class": "command",
            "data-command": line,
            "data-runs": str(command.whole).lower(),
        }
        yield Token("text", "", 0, content=drop_marks(token.content[at : found.start()]))
        yield Token("command_open", "button", 1, attrs=attrs)
        yield Token("text", "", 0, content=line)
        yield Token("command_close", "button", -1)
        at = found.end()
    yield Token("text", "", 0, content=drop_marks(token.content[at:]))


def _mark_links(tokens: "Sequence[Token]") -> "Iterator[Token]":
    within = 0
    for token in tokens:
        within += token.nesting if token.type in ("link_open", "link_close") else 0
        if token.type == "text" and not within:
            yield from _split(token)
        else:
            yield token


def _split(token: "Token") -> "Iterator[Token]":
    from markdown_it.token import Token

    at = 0
    for found in ADDRESS.finditer(token.content):
        url = _trim_url(found[0])
        href = _parser().normalizeLink(url)
        if not url.partition("://")[2] or not _may_lead_to(href):
            continue
        yield Token("text", "", 0, content=token.content[at : found.start()])
        yield Token("link_open", "a", 1, attrs={"href": href})
        yield Token("text", "", 0, content=url)
        yield Token("link_close", "a", -1)
        at = found.start() + len(url)
    yield Token("text", "", 0, content=token.content[at:]) if at else token


def _trim_url(url: str) -> str:
    """Cut the surrounding sentence off `url`."""
    end = len(url)
    more = {close: url.count(close) - url.count(opened) for close, opened in OPENED.items()}
    while end and (url[end - 1] in AFTER or more.get(url[end - 1], 0) > 0):
        end -= 1
        if url[end] in more:
            more[url[end]] -= 1
    return url[:end]


def _link_open(
    self: "RendererHTML",
    tokens: "Sequence[Token]",
    idx: int,
    options: "OptionsDict",
    env: "EnvType",
) -> str:
    tokens[idx].attrs.update(LINK)
    return self.renderToken(tokens, idx, options, env)


def _image(
    self: "RendererHTML",
    tokens: "Sequence[Token]",
    idx: int,
    options: "OptionsDict",
    env: "EnvType",
) -> str:
    from markdown_it.common.utils import escapeHtml

    source = str(tokens[idx].attrs.get("src", ""))
    label = self.renderInlineAsText(tokens[idx].children, options, env) or source
    attrs = " ".join(f'{name}="{value}"' for name, value in LINK.items())
    return f'<a class="image" href="{escapeHtml(source)}" {attrs}>{escapeHtml(label)}</a>'


def _cell(
    self: "RendererHTML",
    tokens: "Sequence[Token]",
    idx: int,
    options: "OptionsDict",
    env: "EnvType",
) -> str:
    """A cell's alignment as a class: the page's policy refuses inline styles."""
    style = str(tokens[idx].attrs.pop("style", ""))
    if style:
        tokens[idx].attrs["class"] = style.rpartition(":")[2]
    return self.renderToken(tokens, idx, options, env)
