"""Cuts JSON that is nested too deeply for the SDK's parser, so that the rest of it is read."""

import re
from itertools import chain

MAX_LEVELS = 150
"""Levels that are left; the SDK's parser refuses a whole message for 200."""
CUT = b'"[left out: nested too deeply]"'
_SIGN = re.compile(rb'["\\\[{\]}\n]')


class LevelCutter:
    """Cuts a text that comes in pieces, one JSON value after another, also as a stream of events:
    a line's end ends a string, an empty line ends all."""

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = self._empty = False
        self._escaped = -1  # the place of an escaped sign in the piece

    def cut(self, piece: bytes) -> bytes:
        """Return the piece without what lies deeper than MAX_LEVELS, which is replaced by CUT."""
        kept: list[bytes] = []
        begin = 0 if self._depth <= MAX_LEVELS else -1  # of what is kept next; -1: it is cut
        for found in _SIGN.finditer(piece):
            sign, at = found[0], found.start()
            if sign == b"\n":
                begin = self._end_line(piece, at, begin)
            elif at == self._escaped:
                continue
            elif sign == b"\\":
                self._escaped = at + 1 if self._quoted else -1
            elif sign == b'"':
                self._quoted = not self._quoted
            elif self._quoted:
                continue
            elif sign in b"[{":
                self._depth += 1
                if self._depth == MAX_LEVELS + 1:
                    kept += (piece[begin:at], CUT)
                    begin = -1
            else:
                self._depth = max(0, self._depth - 1)
                begin = at + 1 if self._depth == MAX_LEVELS else begin
        self._escaped = 0 if self._escaped == len(piece) else -1
        self._empty = piece.endswith((b"\n", b"\n\r"))
        return b"".join((*kept, piece[begin:] if begin >= 0 else b""))

    def _end_line(self, piece: bytes, at: int, begin: int) -> int:
        """Note a line's end at `at`; return where what is kept begins."""
        self._quoted, self._escaped = False, -1
        last = at - 1 if piece[at - 1 : at] == b"\r" else at
        if self._empty if last <= 0 else piece[last - 1 : last] == b"\n":
            self._depth = 0
            return at if begin < 0 else begin
        return begin


def cut_levels(text: bytes) -> bytes:
    """Return a whole text without what lies deeper than MAX_LEVELS."""
    return LevelCutter().cut(text)


def count_levels(value: object) -> int:
    """Return how deeply lists and objects are nested in each other in a parsed value."""
    levels, inside = 0, [value]
    while inside := [one for one in inside if isinstance(one, dict | list)]:
        levels += 1
        values = (one.values() if isinstance(one, dict) else one for one in inside)
        inside = list(chain.from_iterable(values))
    return levels
