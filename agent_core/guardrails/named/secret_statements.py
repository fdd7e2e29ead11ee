"""Finds secrets in SQL's `INSERT INTO … (names) VALUES (…)` by the names of their columns.

A stream holds such a statement until it has ended.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from agent_core.guardrails.named.secret_tables import MAX_TABLE, choose_columns, read_cell

_MAX_HEAD = 1_400
_INTO = r"(?<!\w)insert (?:ignore )?into"
_NAME = r"[^\s()]{1,200}\s{0,8}\("
_BEGIN = re.compile(rf"{_INTO}\s{{1,8}}{_NAME}([^()]{{1,1000}})\)\s{{0,80}}values", re.IGNORECASE)
_BEGUN = re.compile(
    rf"{_INTO}(?:\s{{1,8}}(?:[^\s()]{{0,200}}\s{{0,8}}"
    rf"|{_NAME}[^()]{{0,1000}}(?:\)\s{{0,80}}\w{{0,5}})?))?\Z",
    re.IGNORECASE,
)
_STRING = r"'(?>[^'\\]+|\\.)*+'|\"(?>[^\"\\]+|\\.)*+\"|`[^`]*+`"
_PLAIN = rf"[^'\"`()]++|{_STRING}"
_CALL = rf"\((?>{_PLAIN}|\((?>{_PLAIN})*+\))*+\)"
_ROW = re.compile(rf"[\s,]{{0,80}}\(((?>{_PLAIN}|{_CALL})*+)\)", re.DOTALL)
"""Matches values in brackets, with calls of functions in calls."""
_NEXT = re.compile(r"[\s,]{0,80}(?:\(|\Z)")
_SIGN = re.compile(rf"{_STRING}|[(),]", re.DOTALL)
_QUOTED = re.compile(r"\s{0,80}\w{0,40}\(?\s{0,80}(?=(['\"]))")
"""Matches what may precede a quoted value: `E`, or a function of it."""


class _Statement(NamedTuple):
    """Where a statement with such a column lies, and the insides of its rows. `is_open`: it may go
    on behind the text; `columns`: those with secrets, of `width`."""

    start: int
    end: int
    is_open: bool
    rows: list[tuple[int, int]]
    width: int
    columns: Mapping[int, re.Pattern[str]]


def find_statement_secrets(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the values."""
    for one in _read_statements(text):
        for row in one.rows:
            cells = list(_split(text, *row))
            if len(cells) == one.width:
                found = (
                    read_cell(text, _unwrap(text, *cells[n]), like)
                    for n, like in one.columns.items()
                )
                yield from filter(None, found)


def find_open_statement(text: str) -> int:
    """Return where a statement begins that the end of `text` may be within."""
    done = 0
    for one in _read_statements(text):
        if one.is_open:
            return one.start
        done = one.end
    begun = _BEGUN.search(text, max(done, len(text) - _MAX_HEAD))
    return begun.start() if begun else len(text)


def leave_statement(text: str, at: int) -> int:
    """Return `at`, or where the statement begins that it is within: without it nothing tells of the
    rest."""
    for one in _read_statements(text, at):
        if at < one.end:
            return one.start
    return at


def _read_statements(text: str, until: int | None = None) -> Iterator[_Statement]:
    """Yield those that begin before `until`."""
    done = 0
    for head in _BEGIN.finditer(text):
        if until is not None and head.start() >= until:
            return
        chosen = choose_columns(head[1]) if head.start() >= done else None
        if chosen is not None and chosen[0] == ",":
            yield (found := _read_rows(text, head, *chosen[1:]))
            done = found.end


def _read_rows(
    text: str, head: re.Match[str], width: int, columns: Mapping[int, re.Pattern[str]]
) -> _Statement:
    rows: list[tuple[int, int]] = []
    at, most = head.end(), head.start() + MAX_TABLE
    while row := _ROW.match(text, at, most):
        rows.append(row.span(1))
        at = row.end()
    goes_on = len(text) <= most and _NEXT.match(text, at) is not None
    return _Statement(head.start(), len(text) if goes_on else at, goes_on, rows, width, columns)


def _split(text: str, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the values of a row."""
    start, depth = at, 0
    for found in _SIGN.finditer(text, at, end):
        depth += (found[0] == "(") - (found[0] == ")")
        if depth == 0 and found[0] == ",":
            yield start, found.start()
            start = found.end()
    yield start, end


def _unwrap(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where the quoted value of a cell stands, that of a function's first argument too."""
    before = _QUOTED.match(text, start, end)
    if before is None:
        return start, end
    close = text.find(before[1], before.end() + 1, end)
    return before.end(), close if close >= 0 else end
