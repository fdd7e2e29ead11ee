"""Slack's markup: makes people's messages readable, and the agent's harmless. Pure.

Slack reads `<!channel>`, `<@U1>`, `<#C1>` and `<https://a|what is shown>` anywhere. In a `markdown`
block their `<` is escaped in prose; in code, where an escape might be visible, a word joiner
separates them.
"""

import re
from collections.abc import Iterator

from gateway.command_texts import NamedCommand
from gateway.texts.signs import WORD_JOINER, visible

SPECIAL = re.compile(r"<([^<>|\n]+)(?:\|([^<>\n]*))?>")
CODE = re.compile(
    r"^ {0,3}(?P<fence>`{3,}|~{3,}).*?(?:^ {0,3}(?P=fence)[`~]*[ \t]*$|\Z)"
    r"|(?P<ticks>(?<!`)`+(?!`))[^\n]*?(?<!`)(?P=ticks)(?!`)",
    re.MULTILINE | re.DOTALL,
)
PING = re.compile(r"<(?=[!@#]|[a-z]+:[^<>\n]*\|)")
PICTURE = re.compile(r"(?<![\\!])(\\*)(!+)\[(\]?)")
STRONG = "\ufdd2"
"""Stands for `*` until Markdown's emphasis is written."""
SPANS = (
    (re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE), rf"{STRONG}\1{STRONG}"),
    (re.compile(r"^( *)[-*+] +", re.MULTILINE), r"\1• "),
    (re.compile(r"\*\*(?=\S)([^\n]+?)(?<=\S)\*\*"), rf"{STRONG}\1{STRONG}"),
    (re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]+?)(?<=\S)\*(?![\w*])"), r"_\1_"),
    (re.compile(r"~~(?=\S)([^\n]+?)(?<=\S)~~"), r"~\1~"),
)
ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


SLASH, MENTION = "/turnkeeper", "@turnkeeper"
"""The app's one slash command, with all others as its words; its name, where Slack accepts no
command."""


def write_command(command: NamedCommand, *, thread: bool) -> str:
    """Write a command as a person gives it. In a thread Slack accepts no slash command: there the
    bot is mentioned."""
    return f"{MENTION} /{command.words}" if thread else f"{SLASH} {command.words}"


def make_readable(text: str, me: str = "") -> str:
    """A message's text as its writer saw it; mentions of `me` are left out."""
    if "<" in text:
        text = SPECIAL.sub(lambda found: _render_link(found[1], found[2] or "", me), text)
    for written, meant in ENTITIES:
        text = text.replace(written, meant)
    return text.strip()


def mentions(text: str, me: str) -> bool:
    """`text`, as Slack writes it, names `me`."""
    return any(found[1] == f"@{me}" for found in SPECIAL.finditer(text))


def disarm(markdown: str) -> str:
    """Make `markdown` safe for a `markdown` block: no pings, no remote pictures."""
    if "<" not in markdown and "![" not in markdown:
        return markdown
    return "".join(_parts(markdown))


def escape_markup(text: str) -> str:
    """Bare words for `text` and mrkdwn, where Slack reads markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def write_mrkdwn(markdown: str) -> str:
    """Convert `markdown` without links to Slack's own markup, where no `markdown` block is
    accepted, without pings."""
    made, at = "", 0
    for found in CODE.finditer(markdown):
        made += _write_spans(markdown[at : found.start()]) + escape_markup(found[0])
        at = found.end()
    return made + _write_spans(markdown[at:])


def _write_spans(text: str) -> str:
    text = escape_markup(text)
    for pattern, written in SPANS:
        text = pattern.sub(written, text)
    return text.replace(STRONG, "*")


def strip_markup(text: str) -> str:
    """Words for plain text objects, in one line."""
    return mark_hidden(" ".join(text.split()))


def mark_hidden(text: str) -> str:
    """Show the hidden characters of `text`; it pings nobody where markup is parsed."""
    return PING.sub(f"<{WORD_JOINER}", visible(text))


def clip(text: str, most: int) -> str:
    """`text`, or its beginning where it is longer than `most`."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _parts(markdown: str) -> Iterator[str]:
    at = 0
    for found in CODE.finditer(markdown):
        yield _prose(markdown[at : found.start()])
        yield PING.sub(f"<{WORD_JOINER}", found[0])
        at = found.end()
    yield _prose(markdown[at:])


def _prose(text: str) -> str:
    return PICTURE.sub(_name_picture, PING.sub("&lt;", text))


def _name_picture(found: re.Match[str]) -> str:
    """A link in the place of a picture. An odd backslash makes the mark behind it a plain one."""
    slashes, marks, empty = found.groups()
    escaped = len(slashes) % 2 == 1
    if escaped and marks == "!":
        return found[0]
    return f"{slashes}{'!' if escaped else ''}[{'picture]' if empty else ''}"


def _render_link(target: str, label: str, me: str) -> str:
    kind, name = target[0], target[1:]
    match kind:
        case "@":
            return "" if name == me else f"@{label or name}"
        case "#":
            return f"#{label or name}"
        case "!":
            return label if label.startswith("@") or "^" in name else f"@{label or name}"
    shown = target.removeprefix("mailto:")
    return f"{label} ({target})" if label and label not in (shown, target) else shown
