"""Writes moments as Slack's dates: each reader's own time.

Done last, on the finished payload, so that none is taken for markup before. A `markdown` block has
no dates, so lines with moments become rich text beside it, with their bold, struck and code parts;
in other Markdown, and where Slack parses no markup, moments are words.
"""

import re
from collections.abc import Iterator
from itertools import groupby

import msgspec

from adapters.slack.markup import escape_markup
from gateway.moment_texts import Moment, drop_moments, has_moment, split_moments

FORMAT = "{date_short_pretty} {time}"
MARKDOWN = re.compile(r"[*~`|\\<>#\[\]]|\b_|_\b|^\s*(?:[-+]|\d+[.)])\s|^\s{2,}")
STYLED = re.compile(r"\*\*(?P<bold>[^*`~\n]+)\*\*|~~(?P<strike>[^*`~\n]+)~~|`(?P<code>[^`\n]+)`")
"""Styles that Markdown and rich text share."""
MRKDWN = re.compile(r"[*_~`]")
BLOCKS = 50

Block = dict[str, object]


def write_moment(moment: Moment) -> str:
    """The moment as Slack's own markup has it; `|` and `>` would end its words."""
    words = moment.words.replace("|", " ").replace(">", " ").replace("<", " ")
    return f"<!date^{moment.at}^{FORMAT}|{words}>"


def write_in_payload(payload: bytes) -> bytes:
    """`payload` with its moments written."""
    if not has_moment(payload.decode()):
        return payload
    made: Block = msgspec.json.decode(payload)
    blocks = made.get("blocks")
    if isinstance(blocks, list):
        native = [one for block in blocks for one in _write_block(block)]
        made["blocks"] = native if len(native) <= BLOCKS else blocks
    return msgspec.json.encode(_say_in_words(made))


def make_runs(text: str, style: str = "") -> list[Block]:
    """The runs of a rich text for words and moments; words in this `style`."""
    styled: Block = {"style": {style: True}} if style else {}
    return [
        {"type": "text", "text": one} | styled if isinstance(one, str) else _make_date(one)
        for one in split_moments(text)
    ]


def _make_styled_runs(markdown: str) -> list[Block]:
    """Return the runs of Markdown with no other style than STYLED."""
    made, at = list[Block](), 0
    for found in STYLED.finditer(markdown):
        made += make_runs(markdown[at : found.start()])
        made += make_runs(found[str(found.lastgroup)], str(found.lastgroup))
        at = found.end()
    return made + make_runs(markdown[at:])


def _make_date(moment: Moment) -> Block:
    return {
        "type": "date", "timestamp": moment.at, "format": FORMAT, "fallback": moment.words,
    }  # fmt: skip


def _write_block(block: Block) -> Iterator[Block]:
    match block:
        case {"type": "markdown", "text": str(text)}:
            yield from _part_lines(text)
        case {"type": "rich_text", "elements": list(elements)}:
            yield block | {"elements": [_write_runs(one) for one in elements]}
        case {"type": "context", "elements": list(elements)}:
            yield block | {"elements": [_write_small(one) for one in elements]}
        case _:
            yield block


def _part_lines(text: str) -> Iterator[Block]:
    """Markdown, and rich text for lines of plain words with moments."""
    for native, lines in groupby(text.split("\n"), _can_be_rich):
        joined = "\n".join(lines)
        if native:
            section: Block = {"type": "rich_text_section", "elements": _make_styled_runs(joined)}
            yield {"type": "rich_text", "elements": [section]}
        elif joined.strip():
            yield {"type": "markdown", "text": joined.strip("\n")}


def _can_be_rich(line: str) -> bool:
    words = "".join(one for one in split_moments(line) if isinstance(one, str))
    return has_moment(line) and not MARKDOWN.search(STYLED.sub(_take_words, words))


def _take_words(found: re.Match[str]) -> str:
    """Return styled words, to be searched for more markup; code has none."""
    return "" if found["code"] else found[str(found.lastgroup)]


def _write_small(element: object) -> object:
    """Write small print in Slack's own markup if its words contain none."""
    text = element.get("text") if isinstance(element, dict) else None
    if not isinstance(text, str) or not has_moment(text) or MRKDWN.search(drop_moments(text)):
        return element
    parts = (
        escape_markup(one) if isinstance(one, str) else write_moment(one)
        for one in split_moments(text)
    )
    return {"type": "mrkdwn", "text": "".join(parts), "verbatim": True}


def _write_runs(element: object) -> object:
    """A part of a rich text, its runs of words parted at moments, in their style."""
    if not isinstance(element, dict) or not isinstance(element.get("elements"), list):
        return element
    made: list[Block] = []
    for one in element["elements"]:
        if one.get("type") != "text" or not has_moment(str(one.get("text", ""))):
            made.append(one)
            continue
        style = {"style": one["style"]} if "style" in one else {}
        parts = make_runs(str(one["text"]))
        made += [part | (style if part["type"] == "text" else {}) for part in parts]
    return element | {"elements": made}


def _say_in_words(part: object) -> object:
    match part:
        case str():
            return drop_moments(part)
        case list():
            return [_say_in_words(one) for one in part]
        case dict():
            return {name: _say_in_words(one) for name, one in part.items()}
    return part
