"""Finds the finished part of a growing text: whole blocks of Markdown that nothing later can
change."""

import re

_EDGE = re.compile(r"\n[ \t]*\n(?=\S)")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)
_LIST = re.compile(r"[-*+](?:\s|\Z)|\d{1,9}(?:[.)](?:\s|\Z)|\Z)")
"""Matches an item of a list, or what may become one."""


def find_finished(text: str, start: int = 0) -> int:
    """Return the end of the last finished block at or after `start`: an empty line that precedes no
    item of a list, outside of a fence."""
    cut = start
    for edge in _EDGE.finditer(text, start):
        if _LIST.match(text, edge.end()) or _is_in_fence(text[cut : edge.end()]):
            continue
        cut = edge.end()
    return cut


def count_units(text: str) -> int:
    """Return its length as JavaScript counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _is_in_fence(text: str) -> bool:
    """A fence of code is open at the end of `text`, which begins outside of one."""
    opened = ""
    for found in _FENCE.finditer(text):
        mark, rest = found[1], found[2]
        if not opened:
            opened = mark
        elif mark[0] == opened[0] and len(mark) >= len(opened) and not rest.strip():
            opened = ""
    return bool(opened)
