"""Markdown of a model, which may be hostile, as HTML that loads and runs nothing."""

import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.web.render import draw, to_html
from gateway.ports import Shown
from gateway.views import (
    Activity,
    ApprovalCard,
    ChoiceCard,
    FormCard,
    Notice,
    ProposalLine,
    ReplyView,
    SaidView,
    ToolLine,
    View,
)

TAGS = set(
    [
        "a",
        "p",
        "br",
        "strong",
        "em",
        "s",
        "del",
        "code",
        "pre",
        "blockquote",
        "ul",
        "ol",
        "li",
        "hr",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    ]
)
ATTRIBUTES = {"href", "target", "rel", "class", "title", "start"}


class Judge(HTMLParser):
    """Fails on anything that could load or run."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        for name, value in attrs:
            assert name in ATTRIBUTES, name
            if name == "href":
                assert (value or "").lower().startswith(("http://", "https://", "mailto:"))
                assert ("rel", "noopener noreferrer nofollow") in attrs
                assert ("target", "_blank") in attrs


def judge(html: str) -> str:
    Judge().feed(html)
    return html


HOSTILE = [
    "<script>window.__x = 1</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](java\nscript:alert(1))",
    "[a](&#106;avascript:alert(1))",
    "[a](javascript&colon;alert(1))",
    "[a](\x01javascript:alert(1))",
    "[a](data:text/html,<script>alert(1)</script>)",
    "[a](data:text/html;base64,PHNjcmlwdD4=)",
    "[a](vbscript:x)",
    "[a](file:///etc/passwd)",
    "[a](//evil.example/x)",
    "[a](/api/conversations)",
    "<javascript:alert(1)>",
    "![x](https://evil.example/p.png?secret=1)",
    "![x](data:image/png;base64,AAAA)",
    "![x](data:text/html,<script>)",
    '![x" onerror="alert(1)](https://e.example/"onerror="alert(1))',
    '[a](https://e.example "t\\" onmouseover=\\"alert(1)")',
    '```js" onload="x\n</code></pre><script>x</script>\n```',
    "`</code><script>x</script>`",
    "| a |\n|--:|\n| <script>x</script> |",
    "[![x](https://evil.example/p.png)](javascript:alert(1))",
    "[x]: javascript:alert(1)\n\n[x]",
    "![x]\n\n[x]: https://evil.example/p.png",
    "<a href='https://x' style='position:fixed'>x</a>",
    "<iframe srcdoc='<script>x</script>'></iframe>",
    "<!-- --!><script>x</script>",
]


@pytest.mark.parametrize("markdown", HOSTILE)
def test_hostile_markdown_is_harmless(markdown: str) -> None:
    html = judge(to_html(markdown))
    assert "<script" not in html
    assert "<img" not in html


PIECES = st.sampled_from(
    [
        *HOSTILE,
        "https://e.org/x",
        "https://",
        "- [ ] ",
        "\n\n",
        "\n",
        "> ",
        "- ",
        "**",
        "`",
        "[",
        "](",
        ")",
        "<",
        '"',
    ]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=10)), max_size=12).map("".join))
def test_no_mixture_is_harmful(markdown: str) -> None:
    judge(to_html(markdown))


def test_what_people_want_stays() -> None:
    html = to_html("# Plan\n\n- **one**\n- `two`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n~~x~~\ny")
    for part in ("<h1>", "<li>", "<strong>", "<code>two", "<td>2", "<s>x</s><br"):
        assert part in html
    link = to_html("[docs](https://example.org/?a=1&b=2) <mailto:x@example.org>")
    assert 'href="https://example.org/?a=1&amp;b=2"' in link
    assert 'href="mailto:x@example.org"' in link
    assert '<td class="right">2</td>' in to_html("| a |\n|--:|\n| 2 |")
    assert "javascript:alert(1)" in to_html("[a](javascript:alert(1))"), "nothing is swallowed"


def test_an_image_is_a_link_to_it() -> None:
    html = judge(to_html("![a *cat*](https://example.org/c.png)"))
    assert '<a class="image" href="https://example.org/c.png"' in html
    assert ">a cat</a>" in html
    assert ">https://example.org/c.png</a>" in to_html("![](https://example.org/c.png)")


def test_each_view_has_its_markdown_and_said_has_none() -> None:
    line = ToolLine(call_id="1", tool="t", summary="s", state="done", output="<b>")
    views: dict[View, bool] = {
        ReplyView(text="**x**"): True,
        Notice(text="**x**"): True,
        ChoiceCard(question="q", text="**x**"): True,
        FormCard(question="q", text="**x**", token="q:1:x"): True,
        Activity(lines=(line,), words="**x**"): True,
        SaidView(name="ann", text="**x**"): False,
    }
    for view, formatted in views.items():
        drawn = draw(Shown(rev=1, turn="t", name="n", position=1, at=0.0, view=view))
        assert drawn.html == ("<p><strong>x</strong></p>\n" if formatted else "")


@pytest.mark.pick("hostile nesting", 2)
@pytest.mark.parametrize(
    "markdown", ["> " * 5_000 + "x", "[" * 20_000, "*a " * 20_000, "![" * 10_000, "`" * 20_001]
)
def test_hostile_nesting_ends_soon(markdown: str) -> None:
    judge(to_html(markdown))


def test_an_approval_shows_what_would_run_and_hides_nothing() -> None:
    lines = (
        ProposalLine(tool="run_command", arguments='{"command":"ls -l"}', reason="", risk="low"),
        ProposalLine(
            tool="x\u202ey", arguments='{"a":"\u202e","n":1.0}', reason="\u200b", risk="low"
        ),
    )
    card = ApprovalCard(question="1", asker="Ann", proposals=lines, rule="\u2066")
    drawn = draw(Shown(rev=1, turn="t", name="n", position=1, at=0.0, view=card))
    assert drawn.calls[0].body == "ls -l" and not drawn.calls[0].warnings
    assert drawn.calls[1].facts == (("a", "\\u202e"), ("n", "1.0"))
    assert drawn.decided is None
    assert isinstance(drawn.view, ApprovalCard)
    assert [one.arguments for one in drawn.view.proposals] == [one.arguments for one in lines]
    assert drawn.view.proposals[1].tool == "x\\u202ey"
    assert (drawn.view.proposals[1].reason, drawn.view.rule) == ("\\u200b", "\\u2066")


def test_an_address_in_the_text_is_a_link_to_itself() -> None:
    def hrefs(markdown: str) -> list[str]:
        return re.findall(r'href="([^"]*)"', judge(to_html(markdown)))

    assert hrefs("See https://e.org/a_b_c?d=1&e=2, or (https://e.org/x(y)). Or not.") == [
        "https://e.org/a_b_c?d=1&amp;e=2",
        "https://e.org/x(y)",
    ]
    assert hrefs("**https://e.org/**\n| a |\n|---|\n| http://e.org |") == [
        "https://e.org/",
        "http://e.org",
    ]
    assert hrefs("`https://e.org` [https://e.org](https://f.org) javascript:x https://. ://x") == [
        "https://f.org"
    ]
    assert ">https://e.org/a</a>." in to_html("Go to https://e.org/a.")


def test_a_list_of_tasks_shows_what_is_done() -> None:
    html = judge(to_html("- [x] bought\n- [ ] **paid**\n- [z] other\n\n[x] no list"))
    assert '<li class="task">☑ bought</li>' in html
    assert '<li class="task">☐ <strong>paid</strong></li>' in html
    assert "<li>[z] other</li>" in html and "<p>[x] no list</p>" in html


@pytest.mark.parametrize(
    "around", ["„{}“", "“{}”", "»{}«", "«{}»", "‚{}‘", "{}…", "{}。", "「{}」", "[{}]"]
)
def test_an_address_ends_where_the_words_around_it_begin(around: str) -> None:
    url = "https://en.example/a_(b)[c]"
    assert 'href="https://en.example/a_(b)%5Bc%5D"' in to_html(around.format(url))
    assert f">{url}</a>" in to_html(around.format(url))


def test_an_address_of_brackets_is_read_at_once() -> None:
    begun = time.process_time()
    assert to_html("https://x.example" + ")" * 200_000)
    assert time.process_time() - begun < 3
