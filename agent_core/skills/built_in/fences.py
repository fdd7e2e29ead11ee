"""Extracts code from a model's text."""

import re
from bisect import bisect_right

_OPENS = re.compile(r"(`{3,}|~{3,})[^`]*")
_CLOSES = re.compile(r"(`{3,}|~{3,})[ \t]*")


def code_in(text: str) -> str:
    """Return the longest block of code in `text`, otherwise all of it; ends with one line break."""
    blocks, _ = _split_blocks(text)
    return (max(blocks, key=len) if blocks else text).strip("\n") + "\n"


def strip_code_blocks(text: str) -> str:
    """Return the text around the blocks of code."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(_split_blocks(text)[1])).strip()


def _split_blocks(text: str) -> tuple[list[str], list[str]]:
    """The blocks, and the lines around them. A fence that nothing closes is a line like any other;
    where each kind of fence closes is looked up once, however many are open."""
    lines, blocks, others = text.split("\n"), list[str](), list[str]()
    ends: dict[str, list[int]] = {}
    for n, line in enumerate(lines):
        if closes := _CLOSES.fullmatch(line):
            ends.setdefault(closes[1], []).append(n)
    n = 0
    while n < len(lines):
        opens = _OPENS.fullmatch(lines[n])
        later = ends.get(opens[1], []) if opens else []
        at = bisect_right(later, n)
        others.append("" if at < len(later) else lines[n])
        if at < len(later):
            blocks.append("\n".join(lines[n + 1 : later[at]]))
            n = later[at]
        n += 1
    return blocks, others
