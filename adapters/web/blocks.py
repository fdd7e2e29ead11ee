"""Finds the finished part of a growing text: whole blocks of Markdown that nothing later can
change."""

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_LIST = re.compile(r"[-*+](?:\s|\Z)|\d{1,9}(?:[.)](?:\s|\Z)|\Z)")
"""Matches an item of a list, or what may become one."""


class FinishedBlocks:
    """Follows one growing text; each of its lines is read once. `end`: that of its last finished
    block, which is an empty line that precedes no item of a list, outside of a fence."""

    def __init__(self) -> None:
        self.end = 0
        self._at = 0
        """The beginning of the last line that was not complete."""
        self._fence = ""
        self._after_empty = False

    def follow(self, text: str) -> int:
        """Return the new `end`. `text` begins with that of the last call."""
        while True:
            self._look(text)
            ends = text.find("\n", self._at)
            if ends < 0:
                return self.end
            line = text[self._at : ends]
            self._after_empty = not line.strip(" \t") and self._at > 0
            self._follow_fence(line)
            self._at = ends + 1

    def _look(self, text: str) -> None:
        """Notice if the line that begins here begins a block."""
        if self._fence or not self._after_empty or text[self._at : self._at + 1].strip() == "":
            return
        if not _LIST.match(text, self._at):
            self.end = self._at

    def _follow_fence(self, line: str) -> None:
        found = _FENCE.fullmatch(line)
        if found is None:
            return
        mark, rest = found[1], found[2]
        if not self._fence:
            self._fence = mark
        elif mark[0] == self._fence[0] and len(mark) >= len(self._fence) and not rest.strip():
            self._fence = ""


def count_units(text: str) -> int:
    """Return its length as JavaScript counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
