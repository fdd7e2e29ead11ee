"""Finds the values of Kubernetes' Secrets, whose keys need not tell what they are.

`kubectl` prints the data before the kind: a stream holds what may be such a manifest until it has
ended, or its kind is another one.
"""

import re
from collections.abc import Iterator

from agent_core.guardrails.sign_search import find_sign

MAX_MANIFEST = 8_000
"""Characters of a manifest, of which the rest is not searched."""
MANIFEST_SIGNS = ("apiVersion", "kind")
"""One of these occurs in each beginning of one."""
_BEGIN = re.compile(
    r"(?<![\w.-])(?:apiVersion\"?: ?\"?v1|kind\"?: ?\"?Secret)\"?,?[ \t]{0,80}\r?(?:\n|\Z)",
    re.ASCII,
)
_BEGUN = re.compile(r"(?<![\w.-])(?:apiVersion|kind)\"?(?::[^\n]{0,24})?\Z", re.ASCII)
_LINE = re.compile(
    r"[ \t]{0,80}(?:-[ \t]|[\w./\"-]{1,253}\"?:(?:[ \t]|\Z)|[{}\[\]]|[ \t])|[ \t]{0,80}\Z"
)
_LINE_BEGUN = re.compile(r"[ \t]{0,80}(?:-[ \t]{0,80})?[\w./\"-]{0,255}:?")
_NEXT = re.compile(r"[ \t]{0,80}(?:- |\{\s{1,80})\"?(?:apiVersion|kind)\"?:")
"""Matches where the next one of a list begins."""
_KIND = re.compile(r"[ \t]{0,80}(?:- )?\"?kind\"?: ?\"?(\w{1,80})\"?,?[ \t]{0,80}")
_DATA = re.compile(r"([ \t]{0,80})(?:- )?\"?(?:data|stringData)\"?:[ \t]{0,80}\{?[ \t]{0,80}")
_FIELD = re.compile(r"[ \t]{0,80}\"?[\w./-]{1,253}\"?:[ \t]{1,80}")
_EMPTY = re.compile(r"[|>][+-]?\d?|[{}\[\]]+,?|\"\"|''|null|[{$<].*|ENC\[.*")
_MIN_VALUE = 6


def find_manifest_secrets(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each value."""
    done = 0
    for begin in _find_begins(text):
        if begin >= done:
            done, kind, values = _read_manifest(text, begin)
            if kind == "Secret":
                yield from values


def find_open_manifest(text: str) -> int:
    """Return where a manifest begins that the end of `text` may be within."""
    line = text.rfind("\n") + 1
    begun = _BEGUN.search(text, line)
    at = begun.start() if begun else len(text)
    done = 0
    for begin in _find_begins(text):
        if begin >= done:
            done, kind, _ = _read_manifest(text, begin)
            if done > len(text) and kind in ("", "Secret"):
                return min(at, begin)
            at = min(at, line) if done == line else at
    return at


def _find_begins(text: str) -> list[int]:
    starts = sorted(at for sign in MANIFEST_SIGNS for at, _ in find_sign(sign, text))
    return [at for at in starts if _BEGIN.match(text, at)]


def _read_manifest(text: str, begin: int) -> tuple[int, str, list[tuple[int, int]]]:
    """Return where it ends, behind the text if it may go on; its kind if that is told; and what
    would be its values."""
    kind = "Secret" if text.startswith("kind", begin) else ""
    values: list[tuple[int, int]] = []
    block = -1  # the indentation of the data, or -1 outside of it
    at = text.find("\n", begin) + 1
    while at and at - begin <= MAX_MANIFEST:
        end = text.find("\n", at)
        stop = end if end >= 0 else len(text)
        stop -= text[stop - 1 : stop] == "\r"
        if end < 0 and _LINE_BEGUN.fullmatch(text, at, stop):
            break
        if not _LINE.match(text, at, stop) or _NEXT.match(text, at):
            return at, kind, values
        indent = stop - at - len(text[at:stop].lstrip(" \t"))
        if block >= 0 and (indent > block or at == stop):
            values += _read_value(text, at + indent, stop)
        elif found := _DATA.fullmatch(text, at, stop):
            block = len(found[1])
        else:
            block = -1
            told = _KIND.fullmatch(text, at, stop)
            if told and not kind and (end >= 0 or told[1] == "Secret"):
                kind = told[1]
                if kind != "Secret":
                    return at, kind, values
        at = end + 1
    open_end = not at or at - begin <= MAX_MANIFEST
    return len(text) + 1 if open_end else at, kind, values


def _read_value(text: str, at: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the value of a field, or a line of a longer one."""
    field = _FIELD.match(text, at, stop)
    start = field.end() if field else at
    while stop > start and text[stop - 1] in ", \t":
        stop -= 1
    if _EMPTY.fullmatch(text, start, stop):
        return
    if stop > start + 1 and text[start] in "\"'" and text[stop - 1] == text[start]:
        start, stop = start + 1, stop - 1
    if stop - start >= _MIN_VALUE:
        yield start, stop
