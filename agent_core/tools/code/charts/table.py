"""A table from a CSV file: its columns with their kinds, and what a chart may show of them."""

import csv
import io
import re
from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct

from agent_core.errors import ToolFailed
from agent_core.tools.encodings import decode_text

MAX_ROWS = 200_000
MAX_COLUMNS = 200
MAX_CELLS = 3_000_000
"""Maximum cells, all in memory for a moment."""
MAX_SHOWN = 60
"""Columns that are described."""

Kind: TypeAlias = Literal["number", "date", "text", "empty"]
_PLAIN = re.compile(r"[+-]?(\d+(_\d+)*\.?\d*|\.\d+)([eE][+-]?\d+)?")
_GROUPS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_COMMA = re.compile(r"[+-]?\d+,\d+")
_DATE = re.compile(r"\d{4}-\d\d(-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?)?")


class Column(Struct, frozen=True, kw_only=True):
    """A column: its cells as written, and their common kind."""

    name: str
    kind: Kind
    cells: tuple[str, ...]

    def numbers(self) -> tuple[float | None, ...]:
        """Return the cells as numbers, None for empty ones."""
        return tuple(number(cell) if cell else None for cell in self.cells)


class Table(Struct, frozen=True, kw_only=True):
    """Columns of the same length. `cut`: the file has more rows."""

    columns: tuple[Column, ...]
    rows: int
    cut: bool = False

    def column(self, name: str) -> Column:
        """The column `name`; ToolFailed with the names that there are."""
        for one in self.columns:
            if one.name == name:
                return one
        known = ", ".join(column.name for column in self.columns[:MAX_SHOWN])
        raise ToolFailed(f"There is no column {name!r}. Columns: {known}.")


def parse(data: bytes) -> Table:
    """Parse a CSV file whose first row names the columns."""
    text = decode_text(data)
    head = text[:20_000].partition("\n")[0]
    delimiter = max(",;\t|", key=head.count)
    rows: list[list[str]] = []
    cells, cut = 0, False
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            cut = len(rows) > MAX_ROWS or cells > MAX_CELLS
            if cut:
                break
            kept = [cell.strip() for cell in row[:MAX_COLUMNS]]
            if any(kept):
                rows.append(kept)
                cells += len(kept)
    except csv.Error as error:
        raise ToolFailed(f"It cannot be read as CSV: {error}.") from None
    if not rows:
        raise ToolFailed("The file is empty.")
    names, body = _names(rows[0]), rows[1:]
    columns = tuple(
        _column(name, tuple(row[n] if n < len(row) else "" for row in body))
        for n, name in enumerate(names)
    )
    return Table(columns=columns, rows=len(body), cut=cut)


def describe(table: Table) -> str:
    """The columns in words, a line each."""
    lines = [f"{table.rows:,} rows{' (the file has more)' if table.cut else ''}, "]
    lines[0] += f"{len(table.columns)} columns:"
    lines += [f"- {one.name}: {_describe_column(one)}" for one in table.columns[:MAX_SHOWN]]
    if (more := len(table.columns) - MAX_SHOWN) > 0:
        lines.append(f"- and {more} more columns")
    return "\n".join(lines)


def number(cell: str) -> float | None:
    """Parse a number: 1234.5, 1,234.5 or 1234,5."""
    if _PLAIN.fullmatch(cell):
        return float(cell)
    if _GROUPS.fullmatch(cell):
        return float(cell.replace(",", ""))
    if _COMMA.fullmatch(cell):
        return float(cell.replace(",", "."))
    return None


def date(cell: str) -> datetime | None:
    """Parse a day or moment: 2026-01-31, 2026-01, or with a time."""
    if not _DATE.fullmatch(cell):
        return None
    try:
        return datetime.fromisoformat(f"{cell}-01" if len(cell) == 7 else cell)
    except ValueError:
        return None


def _names(cells: list[str]) -> list[str]:
    """Return the header; an empty or repeated name gets a number."""
    names: list[str] = []
    for n, cell in enumerate(cells, 1):
        name = cell or f"column {n}"
        names.append(name if name not in names else f"{name} ({n})")
    return names


def _column(name: str, cells: tuple[str, ...]) -> Column:
    filled = [cell for cell in cells if cell]
    kind: Kind = "text"
    if not filled:
        kind = "empty"
    elif all(number(cell) is not None for cell in filled):
        kind = "number"
    elif all(date(cell) is not None for cell in filled):
        kind = "date"
    return Column(name=name, kind=kind, cells=cells)


def _describe_column(column: Column) -> str:
    filled = [cell for cell in column.cells if cell]
    missing = len(column.cells) - len(filled)
    gaps = f", {missing:,} empty" if missing and filled else ""
    distinct = len(set(filled))
    if column.kind == "number":
        values = [value for value in column.numbers() if value is not None]
        mean = sum(values) / len(values)
        return f"number, {min(values):g} to {max(values):g}, mean {mean:g}{gaps}"
    if column.kind == "date":
        return f"date, {min(filled)} to {max(filled)}, {distinct:,} different{gaps}"
    shown = ", ".join(repr(cell[:40]) for cell in dict.fromkeys(filled[:1_000]))[:200]
    return f"{column.kind}, {distinct:,} different: {shown}{gaps}" if filled else "empty"
