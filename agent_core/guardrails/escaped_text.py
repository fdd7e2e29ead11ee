"""Reads a text as what its escapes stand for, and knows where each character was written.

`\\n`, `\\u0022`, `%3D`, `&quot;` and the colours of a terminal end in letters and digits: a token
behind one does not begin a word.
"""

import html
import re
from bisect import bisect_right
from collections.abc import Iterator

from msgspec import Struct

from agent_core.guardrails.sign_search import has_any

_ESCAPE = re.compile(
    r"(?:[\x1b\ufffd]|\\{1,8}(?:e|0?33|[xX]1[bB]|u001[bB]))\[[\d;?]{0,16}[A-Za-z]"  # a colour
    r"|\\{1,8}(?:(?P<sign>[nrtfvb!-/:-@\[^-`{-~])"
    r"|x(?P<byte>[0-9a-fA-F]{2})|u(?P<char>[0-9a-fA-F]{4}))"
    r"|%(?:25){0,3}(?P<percent>[0-9A-Fa-f]{2})"
    r"|&(?:amp;){0,3}(?P<entity>quot|apos|lt|gt|amp|#\d{1,5}|#[xX][0-9a-fA-F]{1,4});"
)
ESCAPE_SIGNS = ("\\", "%", "&", "\x1b", "\ufffd")
"""Every escape begins with one of these."""
MAX_LAYERS = 3
"""Escapes of escapes are read: JSON in a page in a URL."""
_SIGNS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "b": "\b"}


class _Part(Struct, frozen=True):
    """A piece without escapes, or what one escape stands for, and where it was written."""

    text: str
    begin: int
    end: int


class PlainText:
    """`text` is the meaning of a text that was written in `parts`, itself the meaning of `below`,
    if there is one."""

    def __init__(self, parts: list[_Part], below: "PlainText | None" = None) -> None:
        self._parts, self._below = parts, below
        self._starts = [0]
        for part in parts:
            self._starts.append(self._starts[-1] + len(part.text))
        self.text = "".join(part.text for part in parts)

    def find_origin(self, start: int, end: int) -> tuple[int, int]:
        """Where a span of `text` begins and ends in the text below all layers."""
        start, end = self._find_place(start)[0], self._find_place(end - 1)[1]
        return (start, end) if self._below is None else self._below.find_origin(start, end)

    def _find_place(self, at: int) -> tuple[int, int]:
        """Where the character at `at` begins and ends in the written text."""
        number = bisect_right(self._starts, at) - 1
        part, inside = self._parts[number], at - self._starts[number]
        if len(part.text) == 1:
            return part.begin, part.end
        return part.begin + inside, part.begin + inside + 1


def read_layers(written: str) -> Iterator[PlainText]:
    """Yield what the text stands for, then what that stands for, and so on, while there are
    escapes."""
    layer: PlainText | None = None
    for _ in range(MAX_LAYERS):
        if not has_any(ESCAPE_SIGNS, written):
            return
        layer = read_escapes(written, layer)
        if layer is None:
            return
        yield layer
        written = layer.text


def read_escapes(written: str, below: PlainText | None = None) -> PlainText | None:
    """Return what the text stands for, or None if it has no escapes."""
    parts: list[_Part] = []
    done = 0
    for found in _ESCAPE.finditer(written):
        literal = _Part(written[done : found.start()], done, found.start())
        parts += (literal, _Part(_read_escape(found), found.start(), found.end()))
        done = found.end()
    if not done:
        return None
    parts.append(_Part(written[done:], done, len(written)))
    return PlainText([part for part in parts if part.text], below)


def _read_escape(found: re.Match[str]) -> str:
    if entity := found["entity"]:
        return html.unescape(f"&{entity};")
    if sign := found["sign"]:
        return _SIGNS.get(sign, sign)
    code = found["byte"] or found["char"] or found["percent"]
    return chr(int(code, 16)) if code else ""
