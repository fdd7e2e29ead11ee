"""Texts made of what markdown, HTML and the platforms' markup read, and every view that may hold
words of others, as each surface draws it."""

import json
from collections.abc import Callable, Iterator, Mapping

from adapters.discord.render import render as render_discord
from adapters.slack.render import render as render_slack
from adapters.telegram.render import render as render_telegram
from adapters.web.render import draw
from gateway.ports import Shown
from gateway.texts.signs import name_signs, visible
from gateway.views import (
    Activity,
    ApprovalCard,
    ChoiceCard,
    FormCard,
    Media,
    Notice,
    PlanStep,
    PlanView,
    ProposalLine,
    ReplyView,
    ReportView,
    ToolLine,
    View,
)

ATOMS = (
    *("*", "**", "_", "__", "`", "```", "~", "~~", "[", "](", "]", "!", "![", "(", ")", "<", "</"),
    *(
        "<a ",
        "&",
        "&amp;",
        "|",
        "||",
        "|-|",
        "\n",
        "\n\n",
        "> ",
        "- ",
        "1. ",
        "# ",
        "\\",
        "$",
        "$$",
    ),
    *(
        "http://a.b/",
        "www.",
        "@",
        "@a",
        "#",
        "<@1>",
        "<!",
        "-->",
        "\t",
        "    ",
        "a",
        "é",
        "😀",
        "ﷺ",
    ),
    *("---\n", "===\n", ":", "{", "}", "/cmd ", "[x]", "- [ ] ", "\r", "\0", "<https://a|b>", " "),
    *("\u202e", "\u200b", "\u0430", "\u0301", '"', "'", '{"a":', "sk-", "=", "+", ",", ".", "%41"),
)
ODDITIES = (
    *("w" * 5_000, "𝕏" * 2_200, "[a](", "http://x.y/" + "z" * 3_000, "```py\n", "- [x] ", "\n> ", "###### "),
    *("| a | b |\n|---|---|\n| 1 | 2 |\n\n", "&#0;", "&#x1F600;", "\u2028", "[^1]", "<details>", "<!--"),
    *("\t- ", "1) ", "10. ", "* * *\n", "~~~\n", "\\\n", "  \n", "tg://user?id=1", "@everyone", "\ufffd", "\ufdd0"),
    *("<t:1:F>", "<#1>", "\u2060", "\ufeff", "\x7f", "\x1b[1m", "\u0600", "🏳️\u200d🌈", "𝕏\u0301" * 40),
)  # fmt: skip
"""What is long, or one sign to a reader and several to a counter."""


Draw = Callable[[View], object]
DRAWN: dict[str, Draw] = {
    "telegram": render_telegram,
    "telegram, rich": lambda view: render_telegram(view, rich=True),
    "discord": render_discord,
    "slack": render_slack,
    "web": lambda view: draw(Shown(turn="t", name="n", rev=1, position=1, at=0.0, view=view)),
    "signs": lambda view: name_signs(visible(str(view))),
}


def list_objects(value: object) -> Iterator[Mapping[str, object]]:
    """Each object in what is drawn, from the outside in."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for one in value if isinstance(value, list) else ():
        yield from list_objects(one)


def make_views(text: str) -> Iterator[View]:
    """What may hold words of others, each full of `text`."""
    line = ProposalLine(tool="run_command", arguments=f'{{"command": {text!r}}}', reason=text,
                        risk="high", preview=text)  # fmt: skip
    yield ReplyView(text=text)
    yield Notice(text=text)
    yield ReportView(title=text[:200], text=text)
    yield ReplyView(text="a", note=text)
    yield ReportView(title=text, text="", note=text)
    yield FormCard(question="q", text=text, token="q:1:text")
    yield ChoiceCard(question="q", text="a", state="answered", outcome=text)
    yield ApprovalCard(question="q", asker="", proposals=(line,), state="denied", outcome=text)
    yield Media(files=(), caption=text)
    yield ChoiceCard(question="q", text=text)
    yield Activity(
        lines=(ToolLine(call_id="1", tool="x", summary=text, state="done", output=text),),
        words=text,
    )
    yield PlanView(title=text, steps=(PlanStep(id="1", text=text, note=text),))
    named = ProposalLine(tool=text, arguments=json.dumps({text[:300]: text}), reason="", risk="low")
    yield ApprovalCard(question="q", asker=text, proposals=(line, named), rule=text, here=text)
