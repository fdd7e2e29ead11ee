"""Word's DOCX."""

from collections.abc import Iterator
from typing import BinaryIO
from zipfile import BadZipFile

from agent_core.documents.formats.tables import render_row
from agent_core.documents.refusal import Refused
from agent_core.text import parse_number


def read(file: BinaryIO) -> Iterator[str]:
    """Paragraphs, headings with #, and tables, in their order; headers, footers and notes are
    left out."""
    import docx
    from docx.opc.exceptions import OpcError
    from docx.table import Table

    try:
        document = docx.Document(file)
    except (OpcError, BadZipFile, KeyError, ValueError) as error:
        raise Refused("it is no Word document, or it is damaged.") from error
    for item in document.iter_inner_content():
        if isinstance(item, Table):
            yield from _read_table(item)
        elif item.text.strip():
            style = (item.style.name or "") if item.style is not None else ""
            level = parse_number(style.removeprefix("Heading ")) or 0
            mark = f"{'#' * level} " if 1 <= level < 7 else ""
            yield f"{mark}{item.text}"


def _read_table(table: "object") -> Iterator[str]:
    yield "[Table]"
    for row in table.rows:  # type: ignore[attr-defined]  # the library has no types
        yield render_row(cell.text for cell in row.cells)
    yield ""
