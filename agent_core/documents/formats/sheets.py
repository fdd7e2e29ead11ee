"""Excel's XLSX."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO
from zipfile import BadZipFile

from agent_core.documents.damage import stop_at_damage
from agent_core.documents.formats.tables import render_row
from agent_core.documents.refusal import Refused

MAX_COLUMNS = 500
_PAUSE = 100
DAMAGED = "[The rest of this sheet was not read: it is damaged.]"


def read(file: BinaryIO) -> Iterator[str | None]:
    """Yield the rows of each sheet that are not empty, with their numbers; a formula without a
    stored value as written. None stands for an empty row."""
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        values = openpyxl.load_workbook(file, read_only=True, data_only=True)
        file.seek(0)
        formulas = openpyxl.load_workbook(file, read_only=True)
    except (InvalidFileException, BadZipFile, KeyError, ValueError, TypeError) as error:
        raise Refused("it is no Excel workbook, or it is damaged.") from error
    for name in values.sheetnames:
        yield f"[Sheet {name}]"
        if not hasattr(values[name], "iter_rows"):
            yield "(a chart)"
            continue
        for sheet in (values[name], formulas[name]):
            sheet.reset_dimensions()  # programs write a size that leaves cells out
        yield from stop_at_damage(_read_rows(values[name], formulas[name]), DAMAGED)


def _read_rows(values: Any, formulas: Any) -> Iterator[str | None]:
    """Yield the rows with text, and None for each of _PAUSE others: a sheet may have a million."""
    rows = zip(values.iter_rows(), formulas.iter_rows(), strict=False)
    for count, (seen, written) in enumerate(rows):
        pairs = islice(zip(seen, written, strict=False), MAX_COLUMNS)
        cells = [v.value if v.value is not None else f.value for v, f in pairs]
        text = render_row(cells)
        if text:
            number = next((cell.row for cell in seen if hasattr(cell, "row")), 0)
            yield f"{number}: {text}"
        elif not count % _PAUSE:
            yield None
