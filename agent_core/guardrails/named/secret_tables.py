"""Finds secrets in tables by the name of their column: CSV, TSV, Markdown, and what `psql` prints.

Columns are counted from the first `|` of a line, or within the signs of a CSV header: a stream has
shown what is before them. It holds a table with such a column until the table ends.
"""

import re
from collections.abc import Iterator

from agent_core.guardrails.sign_search import find_sign

MAX_TABLE = 8_000
"""Characters of a table, of which the rest is not searched."""
MAX_LINE = 1_000
COLUMN_SIGNS = (
    "passw",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "key",
    "kennwort",
    "senha",
    "пароль",
)
"""One of these occurs in the name of each such column, in small letters."""
_PASSWORD = re.compile(
    r"(?:\w{1,24}[_ -])?(?:passwords?|passwd|passwort|passphrase|pwd|kennwort|senha|пароль)", re.I
)
_TOKEN = re.compile(
    r"(?:\w{1,24}[_ -])?(?:(?:api|access|secret|private|auth)[_ -]?(?:access[_ -]?)?(?:key|token)"
    r"|(?:client[_ -]?)?secret|token)",
    re.I,
)
_NO_TOKEN = re.compile(r"(?:page|next|sync|public|csrf)[_ -]?(?:token|key)", re.I)
_HEADER = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.,;\"'-\t")
_AROUND = " \t\r\"'`*"
_RULE = re.compile(r"[ \t|:+=-]{3,}\r?")
_CHOSEN = re.compile(r"(?=.{0,80}\d)(?=.{0,80}[A-Za-z])[\w+/=.!@#%^*~?&$-]{8,200}", re.ASCII)
_DRAWN = re.compile(
    r"(?=.{0,80}\d)(?=.{0,80}[A-Za-z])(?:[0-9a-f]{32,128}"
    r"|(?=.{0,80}[a-z])(?=.{0,80}[A-Z])[\w+/=.-]{16,200}|[\w+/=-]{24,200})",
    re.ASCII,
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_PARTS = re.compile(r"[A-Za-z]+|[0-9]+")
_MIN_COLUMNS = 2


def find_table_secrets(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the values."""
    done = 0
    for begin, line_end in _find_headers(text):
        if begin >= done:
            rows, done = _read_rows(text, begin, line_end)
            yield from rows


def find_open_table(text: str) -> int:
    """Return where a header begins whose table the end of `text` may be within."""
    line = text.rfind("\n") + 1
    least = max(line, len(text) - MAX_LINE)
    bar = text.find("|", least)
    at = bar if bar >= 0 else len(text)
    head = len(text) - text.endswith("\r")  # of a line's end, of which the rest may follow
    while head > least and text[head - 1] in _HEADER:
        head -= 1
    done = 0
    for begin, line_end in _find_headers(text):
        if begin >= done:
            _, done = _read_rows(text, begin, line_end)
            if done > len(text):
                return min(at, head, begin)
            at = min(at, line) if done == line else at  # its first words alone look like a row
    return min(at, head)


def _find_headers(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of each line that may be the header of such a table, in order."""
    if "\n" not in text:
        return []
    found = {}
    small = text.replace("\u0130", "I").lower()  # each letter at its place
    for sign in COLUMN_SIGNS:
        for at, _ in find_sign(sign, small):
            end = text.find("\n", at, at + MAX_LINE)
            line = max(text.rfind("\n", 0, at) + 1, end - MAX_LINE)
            if end >= 0 and line not in found and (begin := _find_header(text, line, end)) >= 0:
                found[line] = (begin, end)
    return [found[line] for line in sorted(found)]


def _find_header(text: str, line: int, end: int) -> int:
    """Return where the columns begin in a line with the name of a secret's, otherwise -1."""
    begin = text.find("|", line, end)
    if begin < 0:
        begin = end - 1 if text[end - 1] == "\r" else end
        while begin > line and text[begin - 1] in _HEADER:
            begin -= 1
    return begin if choose_columns(text[begin:end]) is not None else -1


def choose_columns(header: str) -> tuple[str, int, dict[int, re.Pattern[str]]] | None:
    """Return what separates the columns, their number, and those with secrets."""
    sign = next((one for one in "|,;\t" if one in header), "")
    names = [one.strip(_AROUND) for one in header.split(sign)] if sign else []
    if sign != "|" and not all(names):
        return None  # a list with one word a line
    columns = {
        n: _CHOSEN if _PASSWORD.fullmatch(name) else _DRAWN
        for n, name in enumerate(names)
        if _PASSWORD.fullmatch(name) or (_TOKEN.fullmatch(name) and not _NO_TOKEN.search(name))
    }
    return (sign, len(names), columns) if columns and len(names) >= _MIN_COLUMNS else None


def _read_rows(text: str, begin: int, line_end: int) -> tuple[list[tuple[int, int]], int]:
    """Return the values of the rows, and where the table ends; behind the text if it may go on."""
    found: list[tuple[int, int]] = []
    chosen = choose_columns(text[begin:line_end])
    assert chosen is not None
    sign, count, columns = chosen
    at = line_end + 1
    while at <= len(text):
        end = text.find("\n", at)
        stop = end if end >= 0 else len(text)
        if stop - begin > MAX_TABLE:
            return found, at
        cells = _split(text, at, stop, sign)
        if end < 0 and len(cells) <= count:
            at = len(text) + 1  # the row may go on
        elif not _RULE.fullmatch(text, at, stop) and len(cells) != count:
            return found, at
        if len(cells) == count:
            found += (
                span for n, like in columns.items() if (span := read_cell(text, cells[n], like))
            )
        at = max(at, stop + 1)
    return found, len(text) + 1


def _split(text: str, at: int, end: int, sign: str) -> list[tuple[int, int]]:
    """Return the cells of a row; what is within quotes does not separate them."""
    if sign == "|":
        at = max(text.find("|", at, end), at)
    cells, start, quoted = [], at, False
    if text.find('"', at, end) < 0 or sign == "|":
        for one in text[at:end].split(sign):
            cells.append((start, start + len(one)))
            start += len(one) + 1
        return cells
    for n in range(at, end):
        if text[n] == '"':
            quoted = not quoted
        elif text[n] == sign and not quoted:
            cells.append((start, n))
            start = n + 1
    return [*cells, (start, end)]


def read_cell(text: str, cell: tuple[int, int], like: re.Pattern[str]) -> tuple[int, int] | None:
    """Return where the value of a cell stands if it looks like a secret."""
    start, end = cell
    while start < end and text[start] in _AROUND:
        start += 1
    while start < end and text[end - 1] in _AROUND:
        end -= 1
    if like.fullmatch(text, start, end) is None or _DATE.match(text, start, end):
        return None
    parts = len(_PARTS.findall(text, start, end))
    return (start, end) if like is _DRAWN or parts > 1 else None
