"""No text makes a link, an attribute or a mention in what people see that goes anywhere but to the web,
in whatever spelling, on no surface."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser

from adapters.web.render import SCHEMES
from gateway.views import ReplyView
from tests.attacks.text_grammar import DRAWN, list_objects, make_views
from tests.sampling import dice, examples

TARGETS = (
    *("javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\tscript:alert(1)", "java&#x0A;script:alert(1)", "&#106;avascript:alert(1)"),
    *("javascript&colon;alert(1)", "\x01javascript:alert(1)", "javascript://%0aalert(1)", "feed:javascript:x", "vbscript:x"),
    *("data:text/html,<script>", "data:image/svg+xml,<svg onload=x>", "file:///etc/passwd", "blob:x", "about:blank", "view-source:x"),
    *("//evil.example/x", "/servers/signin/x", "\\\\evil.example\\x", "?a=b", "tg://resolve?domain=x", "tg://user?id=5", "slack://open"),
    *("intent://x#Intent;end", "ms-word:ofe|u|http://x", "search-ms:query=x", "vscode://x", "itms-services://?action=x", "web+x:y"),
)  # fmt: skip
AROUND = (
    *("[a]({})", "[a](<{}>)", "[a][r]\n\n[r]: {}", "<{}>", "{}", '<a href="{}">a</a>', "<a href={}>a</a>", '[a]({} "t")', "<{}|a>"),
    *("[![i](x)]({})", "[r]\n\n[r]: <{}>", '<form action="{}"><button>x</button></form>', "[^1]: {}\n\n[^1]", "| a |\n|---|\n| [a]({}) |"),
    *("> [a]({})", "- [ ] [a]({})", "# [a]({})", "**[a]({})**", "[`a`]({})", "$[a]({})$", "[https://bank.example]({})", "<svg><a xlink:href={}>"),
)  # fmt: skip
PINGS = (
    *("@everyone", "@here", "<@123>", "<@!123>", "<@&123>", "<#123>", "<!channel>", "<!here>", "<!subteam^S1>", "<@U123>", "<#C1|x>"),
    *("</cmd:1>", "<id:guide>", "&lt;!channel&gt;", "&#60;!channel&#62;", "\\<!channel>", "<!channel|x>", "<<!channel>>", "@channel"),
)  # fmt: skip
_LINKS = frozenset(
    ("href", "src", "action", "formaction", "xlink:href", "srcset", "poster", "data")
)
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


class _Links(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        assert not any(name.startswith("on") for name in names), attrs
        self.found += [value or "" for name, value in attrs if name in _LINKS]


def list_links(drawn: object) -> Iterator[str]:
    yield from _Links(getattr(drawn, "html", "")).found
    for payload in drawn if isinstance(drawn, tuple) else ():
        for one in list_objects(json.loads(payload)) if isinstance(payload, bytes) else ():
            yield from (str(one[name]) for name in ("url", "href") if name in one)


def test_links_lead_to_the_web_alone() -> None:
    for n in range(examples(160)):
        chance = dice("schemes", n)
        text = f"x {chance.choice(AROUND).replace('{}', chance.choice(TARGETS))}"
        for view in make_views(text):
            for surface, draw in DRAWN.items():
                strange = [one for one in list_links(draw(view)) if not one.startswith(SCHEMES)]
                assert not strange, (surface, text, strange)


def test_links_of_the_web_stay() -> None:
    for text in (
        "[a](https://h.example/x?y=1)",
        "<https://h.example/x?y=1>",
        "https://h.example/x?y=1",
    ):
        assert "https://h.example/x?y=1" in list_links(DRAWN["web"](ReplyView(text=text)))


def list_pings(platform: str, payload: dict[str, object]) -> Iterator[str]:
    if platform == "discord" and payload.get("allowed_mentions") != {"parse": []}:
        yield "it may ping"
    for one in list_objects(payload) if platform == "slack" else ():
        if one.get("type") in ("broadcast", "user", "usergroup"):
            yield str(one)
        if one.get("type") in ("mrkdwn", "markdown", "markdown_text"):
            yield from re.findall("<[!@#]", _CODE.sub("", str(one["text"])))


def test_no_words_ping_anybody() -> None:
    for n in range(examples(80)):
        chance = dice("pings", n)
        around = chance.choice(
            (
                "{}",
                "**{}**",
                "> {}",
                "`{}`",
                "[{}](http://x.example/)",
                "| a |\n|---|\n| {} |",
                "# {}",
                "<b>{}</b>",
            )
        )
        text = around.replace("{}", chance.choice(PINGS))
        for view in make_views(text):
            for platform in ("discord", "slack"):
                drawn = DRAWN[platform](view)
                for payload in drawn if isinstance(drawn, tuple) else ():
                    if isinstance(payload, bytes):
                        found = list(list_pings(platform, json.loads(payload)))
                        assert not found, (platform, text, found)
