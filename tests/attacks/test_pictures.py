"""No text has a platform, or who looks at the page, fetch an address that it names: a reader has to
follow a link."""

import json
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from gateway.views import ReplyView, View
from tests.attacks.picture_grammar import make_text
from tests.attacks.text_grammar import DRAWN, list_objects, make_views
from tests.sampling import dice

READERS = (
    *(MarkdownIt("commonmark", {"html": tags}) for tags in (True, False)),
    *(
        MarkdownIt("commonmark", {"html": tags}).enable(["table", "strikethrough"])
        for tags in (True, False)
    ),
)
FETCH = frozenset(
    ("img", "image", "video", "audio", "source", "iframe", "object", "embed", "link", "style")
) | {"script", "meta", "base", "svg"}
"""Tags that fetch, or have others fetch."""
ATTRIBUTES = frozenset({"src", "srcset", "style", "poster", "data", "background", "ping", "action"})
SUPPRESS_EMBEDS = 1 << 2
MEDIA = frozenset({11, 12, 13, "photo", "image", "video", "animation", "audio", "document"})
"""Components of Discord, and blocks of Telegram and Slack, that show what is at an address."""


class _Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        if tag in FETCH or names & ATTRIBUTES or any(name.startswith("on") for name in names):
            self.found.append(tag)


def has_picture(markdown: str) -> bool:
    """As a whole reader of markdown has it, of tables or not."""
    tokens = [token for reader in READERS for token in reader.parse(markdown)]
    return any(one.type == "image" for token in tokens for one in token.children or ())


def find_fetched(view: View) -> Iterator[str]:
    for platform, draw in DRAWN.items():
        drawn = draw(view)
        for html in (getattr(drawn, "html", ""),):
            yield from (f"{platform}: {tag}" for tag in _Tags(html).found)
        for payload in drawn if isinstance(drawn, tuple) else ():
            if isinstance(payload, bytes):
                yield from (f"{platform}: {one}" for one in look_at(platform, json.loads(payload)))


def look_at(platform: str, payload: dict[str, object]) -> Iterator[str]:
    sent = payload.get("method") == "sendMessage"
    if sent and payload["link_preview_options"] != {"is_disabled": True}:
        yield "a preview"
    if platform == "discord" and not int(str(payload["flags"])) & SUPPRESS_EMBEDS:
        yield "an embed"
    for one in list_objects(payload):
        if one.get("type") in MEDIA or "image_url" in one:
            yield f"what is at an address: {one}"
        if one.get("type") in ("markdown", "markdown_text") and has_picture(str(one["text"])):
            yield f"a picture: {one['text']!r}"


def none_is_fetched(part: str, count: int, *, everywhere: bool) -> None:
    for n in range(count):
        text = make_text(dice("pictures", part, n))
        for view in make_views(text) if everywhere else (ReplyView(text=text),):
            assert not list(find_fetched(view)), f"{type(view).__name__}, {n}, {text!r}"


def test_what_fetches_is_found() -> None:
    """By the very readers above."""
    assert has_picture("!![a](http://b/)") and not has_picture("`![a](http://b/)`")
    assert _Tags("<a href=x>y</a><img src=x>").found == ["img"]
    assert list(look_at("discord", {"flags": 0, "components": [{"type": 12}]})) != []


def test_a_few_texts_fetch_nothing() -> None:
    none_is_fetched("few", 40, everywhere=False)


@pytest.mark.parametrize(
    "text",
    [
        "Wow!![a](http://b.example/)",
        "\\\\![a](http://b.example/)",
        "\\`![a](http://b.example/)`",
        "- a\n  ```\n  x\n![a](http://b.example/)",
        "\\!![a](http://b.example/)",
        "| a | b |\n|---|---|\n| c |\n```a`b\n![a](http://b.example/)`",
        "<pre>\n\n- a\n  ```\n  x\n![a](http://b.example/)\n~~~\n",
        "x\n: - a\n  ```\n  x\n![a](http://b.example/)",
        "~~~![a](http://b.example/)|\n|---|\n````\n```\n",
    ],
)
def test_what_slack_once_would_have_fetched(text: str) -> None:
    assert not list(find_fetched(ReplyView(text=text)))


@pytest.mark.parametrize(
    "text",
    [
        "See [a](http://b.example/):\n```rust\nlet x = vec![1];\n```\nand `#![no_std]`.",
        "Write `![a](b.png)` or `![a][b]`:\n\n```md\n![a](b.png)\n\n[b]: c.png\n```\n\nThat is all.",
        "1. Add it.\n\n~~~\n<p>\n![a](b.png)\n~~~",
    ],
)
def test_code_that_looks_like_a_picture_stays(text: str) -> None:
    (payload,) = DRAWN["slack"](ReplyView(text=text))  # type: ignore[misc]
    assert json.loads(payload)["blocks"][0]["text"] == text


@pytest.mark.slow
@pytest.mark.parametrize("part", ["a", "b", "c"])
def test_hundreds_of_texts_in_every_view_fetch_nothing(part: str) -> None:
    none_is_fetched(part, 300, everywhere=True)
