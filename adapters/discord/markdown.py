"""Markdown as Discord shows it: tables as code, small headings bold, code that cannot break out.

Discord has neither tables nor pictures by link, and its fences are of three backticks only.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING
from unicodedata import combining, east_asian_width

from adapters.text import RULE, measure_utf16, split
from gateway.command_texts import NamedCommand
from gateway.moment_texts import map_words
from gateway.texts.signs import WORD_JOINER, visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LIMIT = 3_800
"""Most of a message's text in UTF-16 units; 4,000 are allowed over all of its components."""

FENCE = re.compile(r"\s*(`{3,}(?=[^`\n]*$)|~{3,})([^\n]*)$")
"""Matches fences, also indented ones, as in lists: Discord accepts them anywhere."""
HEADING = re.compile(r"^ {0,3}#{4,6} +(.*?)(?: +#+)? *$")
TASK = re.compile(r"^(\s*)[-*+] \[([ xX])\] ")
IMAGE = re.compile(r"!(\[[^\[\]\n]*\]\([^()\s]{1,2048}\))")
SPECIAL = re.compile(r"([\\`*_~|<>#\[\]()])")
LISTED = re.compile(r"^([^\S\n]*)([-+]|\d+\.)(?=\s)", re.MULTILINE)
MARKED = re.compile(r"[\\`*_~<&\[]")
WEB = re.compile(r"https?://[^\s()]+$")
MENTION = re.compile(r"<(?=[@#/:]|[at]:|id:)")
"""Matches the start of a mention, an emoji or a timestamp, in any context."""
WIDEST, LINKS = 44, 4
"""Maximum columns of a table as code, as many as a phone shows in a line; links in a line below
it."""
SIDES: dict[tuple[bool, bool], Callable[[str, int], str]] = {
    (False, False): str.ljust,
    (True, False): str.ljust,
    (False, True): str.rjust,
    (True, True): str.center,
}
"""Alignment of a column by (colon before the rule, colon after it)."""


def parts(text: str, limit: int = LIMIT) -> list[str]:
    """Split `text` into messages, each with its fences closed; [] if nothing is visible."""
    shown = split(write_native(text), limit, measure_utf16)
    return [part.strip("\n") for part in shown if is_visible(part)]


def is_visible(text: str) -> bool:
    """Discord refuses a text in which it sees nothing."""
    return any(one.isprintable() and not one.isspace() for one in text)


def write_native(text: str) -> str:
    """Convert what Discord does not support."""
    text = re.sub(r"\r\n?", "\n", text).replace("\x00", "")
    return "\n".join(_lines(text.split("\n")))


def one_line(text: str, most: int) -> str:
    """Words for a single line: no blocks, at most `most` characters of them."""
    line = visible(" ".join(write_native(text).split()))
    line = line if len(line) <= most else f"{line[: most - 1]}…"
    line = MENTION.sub(f"<{WORD_JOINER}", line)
    return line if "```" not in line and line.count("`") % 2 == 0 else escape_markup(line)


def escape_markup(text: str) -> str:
    """Escape all markup in `text`; its moments stay."""
    return map_words(text, _escape)


def _escape(text: str) -> str:
    escaped = SPECIAL.sub(r"\\\1", visible(text).replace("\x00", ""))
    return LISTED.sub(lambda at: f"{at[1]}\\{at[2]}", escaped)


def code(text: str) -> str:
    """`text` in a line, as code; "" without any."""
    line = " ".join(text.replace("`", "ˋ").split())
    return f"`{line}`" if is_visible(line) else ""


def exact_code(text: str) -> str:
    """`text`, of one line, as code in which no sign is another one; "" without any. Two backticks
    are written as JSON would."""
    if not is_visible(text):
        return ""
    if "`" not in text:
        return f"`{text}`"
    inside = text.replace("``", "`\\u0060")
    before = " " if inside.lstrip(" ").startswith("`") else ""  # Discord removes these
    behind = " " if inside.rstrip(" ").endswith("`") else ""
    return f"``{before}{inside}{behind}``"


def write_command(command: NamedCommand, ids: Mapping[str, str]) -> str:
    """Write the command as a mention that opens it, by the ids that Discord gave; as code if there
    is none, or if it has arguments, which no mention can have."""
    number = "" if command.arguments else ids.get(command.name, "")
    return f"</{command.name}:{number}>" if number else code(f"/{command.words}")


def fence(text: str, language: str = "") -> str:
    """`text` as a block of code; "" without any. A fence within it is written as JSON would."""
    if not is_visible(text):
        return ""
    inside = text.replace("\x00", "").replace("```", "``\\u0060")
    return f"```{language}\n{inside}\n```"


def _lines(lines: Sequence[str]) -> Iterator[str]:
    fence, at = "", 0
    while at < len(lines):
        line = lines[at]
        if fence:
            if _closes(line, fence):
                fence, line = "", "```"
            yield line if not fence else line.replace("```", "``\\u0060")
        elif opened := FENCE.match(line):
            fence = opened.group(1)
            yield f"```{_language(opened.group(2))}"
        elif rows := _table(lines, at):
            yield from _render_table(lines[at : at + rows])
            at += rows
            continue
        else:
            yield _line(line)
        at += 1
    if fence:
        yield "```"


def _closes(line: str, fence: str) -> bool:
    bare = line.strip()
    return bool(bare) and not bare.strip(fence[0]) and len(bare) >= len(fence)


def _language(info: str) -> str:
    word = info.split()[0] if info.split() else ""
    return word if re.fullmatch(r"[A-Za-z0-9_+.#-]{1,20}", word) else ""


def _line(line: str) -> str:
    heading = HEADING.match(line)
    if heading and "```" not in line:
        return f"**{heading.group(1)}**" if heading.group(1) else ""
    line = TASK.sub(lambda at: f"{at[1]}- {'☐' if at[2] == ' ' else '☑'} ", line)
    return IMAGE.sub(r"\1", line).replace("```", "\\`\\`\\`")


def _table(lines: Sequence[str], at: int) -> int:
    """Return the number of lines of the table that begins there, 0 for none."""
    if "|" not in lines[at] or at + 1 >= len(lines) or "|" not in lines[at + 1]:
        return 0
    if not RULE.fullmatch("".join(lines[at + 1].split())):
        return 0
    end = at + 2
    while end < len(lines) and "|" in lines[end]:
        end += 1
    return end - at


def _render_table(lines: Sequence[str]) -> Iterator[str]:
    """Render a table in columns, as code, and below it its links' targets; a wide one as a list."""
    rows = [_cells(line) for n, line in enumerate(lines) if n != 1]
    count = max(map(len, rows))
    rows = [row + [""] * (count - len(row)) for row in rows]
    bare, links = _without_markup(rows)
    widths = [max(map(_columns, column), default=0) for column in zip(*bare, strict=True)]
    if sum(widths) + 3 * (count - 1) > WIDEST:
        yield from _render_rows(rows)
        return
    sides = [SIDES[cell[:1] == ":", cell[-1:] == ":"] for cell in _cells(lines[1])]
    sides += [str.ljust] * (count - len(sides))
    yield "```"
    for n, row in enumerate(bare):
        cells = (
            side(cell, width - _columns(cell) + len(cell))
            for cell, width, side in zip(row, widths, sides, strict=False)
        )
        yield " | ".join(cells).rstrip() or " "
        if n == 0:
            yield "-+-".join("-" * max(width, 1) for width in widths)
    yield "```"
    for at in range(0, len(links), LINKS):
        yield "-# " + " · ".join(links[at : at + LINKS])


def _without_markup(rows: Sequence[Sequence[str]]) -> tuple[list[list[str]], list[str]]:
    """Return the cells without markup, and the links that were in them."""
    if not any(MARKED.search(cell) for row in rows for cell in row):
        return [list(row) for row in rows], []
    found: dict[str, str] = {}
    bare = [[_strip_links(cell, found) for cell in row] for row in rows]
    return bare, [f"[{escape_markup(label)}]({url})" for url, label in found.items()]


def _strip_links(cell: str, found: dict[str, str]) -> str:
    """The words of `cell`; its links go to `found`, by where they lead."""
    shown, opened = "", (0, "")
    (line,) = _reader().parseInline(cell)
    for token in line.children or ():
        match token.type:
            case "link_open":
                opened = len(shown), str(token.attrs["href"])
            case "link_close":
                label = shown[opened[0] :].strip()
                if label and WEB.match(opened[1]):
                    found.setdefault(opened[1], label)
            case _:
                shown += token.content
    return shown.replace("```", "``\\u0060")


@cache
def _reader() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("strikethrough")


def _columns(text: str) -> int:
    """Return the width of `text` in columns: letters take one, or two."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(one) else 1 + (east_asian_width(one) in ("W", "F")) for one in text)


def _render_rows(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Render a table that is too wide for columns: each row with its cells' headings."""
    heads = [_line(cell) for cell in rows[0]]
    yield " · ".join(filter(None, heads if len(rows) == 1 else heads[:1]))
    for first, *others in rows[1:]:
        named = zip(heads[1:], map(_line, others), strict=True)
        cells = (f"{head}: {cell}" if head else cell for head, cell in named if cell)
        yield "- " + " · ".join([_line(first) or "–", *cells])


def _cells(line: str) -> list[str]:
    bare = line.strip().removeprefix("|")
    bare = bare[:-1] if bare.endswith("|") and not bare.endswith("\\|") else bare
    cells = re.split(r"(?<!\\)\|", bare)
    return [cell.strip().replace("\\|", "|").replace("```", "``\\u0060") for cell in cells]
