"""Characters of which two events of a stream hold a half each.

A server that cuts its text by UTF-16 (many are written in JavaScript) sends an emoji as two escapes
in two events, neither of which is valid JSON by itself.
"""

import re

HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""Matches an event that may have one."""
_ESCAPE = re.compile(
    rb"(?P<pair>\\u[dD][89abAB]..\\u[dD][c-fC-F]..)"
    rb'|(?P<first>\\u[dD][89abAB]..(?="))'
    rb"|(?P<second>\\u[dD][c-fC-F]..)"
    rb"|(?P<alone>\\u[dD][89abAB]..)"
    rb"|\\.",
    re.DOTALL,
)
_UNKNOWN = b"\\ufffd"


class HalfJoiner:
    """Joins halves over the events of one answer."""

    _held = b""

    def join(self, data: bytes) -> bytes:
        """Return the event without a first half at the end of a text, which the second half that
        follows gets back. A half whose other one is missing becomes the sign for that."""
        return _ESCAPE.sub(self._join, data)

    def _join(self, found: re.Match[bytes]) -> bytes:
        match found.lastgroup:
            case "first":
                self._held = found[0]
                return b""
            case "second":
                held, self._held = self._held, b""
                return held + found[0] if held else _UNKNOWN
            case "alone":
                return _UNKNOWN
            case _:
                return found[0]
