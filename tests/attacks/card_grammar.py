"""Words of others in each place of a card, and what a reader of each platform makes of the card: its
links, mentions, headings, quotes, pictures and buttons."""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser

from markdown_it import MarkdownIt

from gateway.views import (
    Activity,
    ApprovalCard,
    Button,
    ChoiceCard,
    FormCard,
    Media,
    MediaFile,
    PlanStep,
    PlanView,
    ProposalLine,
    ReplyView,
    ReportView,
    ToolLine,
    View,
)
from tests.attacks.text_grammar import ATOMS, ODDITIES

MARKUP = (
    *("[x](http://e.x/)", "![x](http://e.x/)", "<http://e.x|y>", "<http://e.x>", "<@1>", "<@U1>", "<!channel>", "<#C1>"),
    *("</a:1>", "<t:1:R>", "<a:b:1>", "\n# Approved by Ann", "\n## h", "\n> q", "\n>>> q", "\n-# small", "\n- l", "\n1. l"),
    *("||s||", "```", "``", "`", "\n```\n", "\n~~~\n", "\\", "\\\\", "**", "__", "*", "_", "[x]: http://e.x\n", "[x]", "[^1]"),
    *("\n[^1]: n\n", "<b>", "<a href=http://e.x>", "<br>", "<details>", "| a |\n|---|\n| ", "|", "\t", "    ", "\n\n", "\n"),
    *("x", "w" * 60, "✓ Approved by Ann", "\n☑ Approved", "\u202e", "\u2028", "\u0085", "\r", "\x0b", "\u200b", "&lt;"),
    *("&#91;", "&#60;!channel&#62;", "tg://user?id=1", "\n---\n", "\n===\n", "a@b.c", "@everyone", "/cmd", "⟨", "⟩", "ˋ"),
)  # fmt: skip
_BUTTONS = (
    Button(label="Approve", token="q:1:approve", style="good"),
    Button(label="No", token="q:1:deny", style="bad"),
)
_PLAIN_STEPS = (PlanStep(id="1", text="s"),)
_BODY = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_NO_MARKUP = re.compile(r"\\[^A-Za-z0-9\s]|``.+?``(?!`)|`[^`]+`", re.DOTALL)
"""An escaped sign, or code, in which a backslash escapes nothing."""
_DISCORD = {
    "heading": re.compile(r"^(?:#{1,3}|-#) +\S", re.MULTILINE),
    "quote": re.compile(r"^ *>(?:>>)? +\S", re.MULTILINE),
    "link": re.compile(r"\[[^\]\n]+\]\(<?[a-z]+://"),
    "mention": re.compile(r"<(?:[@#/:]|[at]:|id:)"),
    "spoiler": re.compile(r"\|\|.+?\|\|"),
}
_SLACK = {"ping": re.compile(r"<[@!#]"), "link": re.compile(r"<[a-z]+:[^<>\n]*>")}
_MARKED = frozenset({"heading_open", "blockquote_open", "html_block", "image", "html_inline"})
_NATIVE = frozenset(
    ("button", "user", "usergroup", "channel", "broadcast", "header", "rich_text_quote", "image")
) | {"text_link", "mention", "text_mention", "blockquote", "heading", "quote", "photo", "anchor"}
_READERS = (MarkdownIt("commonmark"), MarkdownIt("commonmark").enable(["table", "strikethrough"]))
_WEB = frozenset({"a", "button", "img", "h1", "h2", "h3", "blockquote", "input", "form"})


def make_words(chance: random.Random) -> str:
    atoms = MARKUP + ATOMS + (ODDITIES if chance.random() < 0.3 else ())
    return "".join(chance.choices(atoms, k=chance.choice((1, 2, 3, 5, 9, 20))))


def place_words(words: str) -> Iterator[tuple[str, View]]:
    """Each place of a card whose words are shown as they are, with `words` in it."""
    call = json.dumps({"command": words})
    for name, line in {
        "command": _line(arguments=call),
        "argument": _line(arguments=json.dumps({"command": "ls", "cwd": words})),
        "key": _line(arguments=json.dumps({"a": "b", words: "c"})),
        "tool": _line(tool=words),
        "broken arguments": _line(arguments=words),
        "reason": _line(reason=words),
        "preview": _line(tool="write_file", preview=words, arguments=json.dumps({"path": words})),
    }.items():
        yield name, _ask(proposals=(line,))
    yield "asker", _ask(asker=words)
    yield "rule", _ask(rule=words)
    yield "here", _ask(here=words)
    yield "outcome", _ask(state="denied", outcome=words)
    yield "decided", _ask(state="approved", outcome="by Ann", proposals=(_line(arguments=call),))
    yield "choice", ChoiceCard(question="q", text="a", state="answered", outcome=words)
    yield "form", FormCard(question="q", text="a", token="t", state="answered", outcome=words)
    yield (
        "button",
        ChoiceCard(question="q", text="a", buttons=(Button(label=words, token="q:1:a"),)),
    )
    yield "title", PlanView(title=words, steps=_PLAIN_STEPS)
    noted = PlanStep(id="1", text="s", note=words, state="failed")
    yield "note", PlanView(title="t", steps=(noted,))
    yield "end", PlanView(title="t", steps=_PLAIN_STEPS, state="done", outcome=words)
    for name in ("output", "summary", "tool"):
        told = {"tool": "x", "summary": "s", "output": "", name: words}
        done = ToolLine(call_id="1", state="failed", **told)  # type: ignore[arg-type]
        yield f"line's {name}", Activity(lines=(done,))
    yield "below", ReplyView(text="a", note=words)
    yield "report", ReportView(title=words, text="a", note=words)
    large = MediaFile(ref="r", name=words, mime="text/plain", size=99 << 20)
    yield "file", Media(files=(large,))


def place_step(words: str) -> View:
    """A plan with the step: of markdown it may have what stands within a line."""
    return PlanView(title="t", steps=(PlanStep(id="1", text=words),))


def count_marks(platform: str, drawn: object) -> Counter[str]:
    """What a reader sees in it that is more than words."""
    if html := getattr(drawn, "html", ""):
        return _Tags(html).found
    found = Counter[str]()
    for payload in drawn if isinstance(drawn, tuple) else ():
        told = json.loads(payload)
        if platform == "slack":
            found += _count(_SLACK, str(told.get("text", "")))
        for one in _walk(told):
            found += _count_object(platform, one)
    return found


def _line(**words: str) -> ProposalLine:
    plain = {"tool": "run_command", "arguments": '{"command": "ls"}', "reason": "r"}
    return ProposalLine(**(plain | words), risk="high")


def _ask(**fields: object) -> ApprovalCard:
    plain = {"question": "q", "asker": "Ann", "proposals": (_line(),), "buttons": _BUTTONS}
    return ApprovalCard(**(plain | fields))  # type: ignore[arg-type]


def _count_object(platform: str, one: dict[str, object]) -> Counter[str]:
    kind = str(one.get("type", ""))
    found = Counter([kind] if kind in _NATIVE else ["button"] if "callback_data" in one else [])
    if platform == "discord" and one.get("type") == 10:
        found += _count(_DISCORD, _bare(str(one["content"])))
    if platform == "discord" and one.get("type") == 2:
        found["button"] += 1
    if kind == "mrkdwn":
        found += _count(_SLACK, str(one["text"]))
    if kind == "markdown" and platform == "slack":
        tokens = [token for reader in _READERS for token in reader.parse(str(one["text"]))]
        inner = [child for token in tokens for child in token.children or ()]
        found.update(token.type for token in (*tokens, *inner) if token.type in _MARKED)
        found["ping"] += len(_SLACK["ping"].findall(_BODY.sub("", str(one["text"]))))
        found["link"] += len(_SLACK["link"].findall(_bare(str(one["text"]))))
    return found


def _bare(content: str) -> str:
    """What Discord looks for markup in."""
    return _NO_MARKUP.sub("\ue000", _BODY.sub("", content))


def _count(known: dict[str, re.Pattern[str]], text: str) -> Counter[str]:
    return Counter({name: len(pattern.findall(text)) for name, pattern in known.items()})


def _walk(value: object) -> Iterator[dict[str, object]]:
    if isinstance(value, dict):
        yield value
        for inside in value.values():
            yield from _walk(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from _walk(inside)


class _Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found = Counter[str]()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _WEB:
            self.found[tag] += 1
