"""Word's DOCX."""

from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO
from zipfile import BadZipFile

from agent_core.documents.formats.office import choose_forms, find_diagrams, read_diagram
from agent_core.documents.formats.tables import render_row
from agent_core.documents.refusal import Refused
from agent_core.text import parse_number

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_TEXTS = (f"{_WORD}t", "{http://schemas.openxmlformats.org/officeDocument/2006/math}t")
_MARKS = {f"{_WORD}tab": "\t", f"{_WORD}br": "\n", f"{_WORD}cr": "\n", f"{_WORD}noBreakHyphen": "-"}
_BOX, _PARAGRAPH, _TABLE = f"{_WORD}txbxContent", f"{_WORD}p", f"{_WORD}tbl"
_GONE = frozenset(f"{_WORD}{one}" for one in ("del", "moveFrom", "rt", "pPr"))
"""Elements that are not shown: deleted text, readings of signs."""
MAX_SPAN = 100
"""Columns over which a cell is repeated."""


def read(file: BinaryIO) -> Iterator[str]:
    """Paragraphs, headings with #, and tables, in their order, with tracked changes accepted;
    headers, footers and notes are left out."""
    import docx
    from docx.opc.exceptions import OpcError
    from docx.text.paragraph import Paragraph

    try:
        document = docx.Document(file)
    except (OpcError, BadZipFile, KeyError, ValueError) as error:
        raise Refused("it is no Word document, or it is damaged.") from error
    body: Any = document.element.body
    choose_forms(body)
    _write_diagrams(body, document.part)
    for block in _find_blocks(body):
        if block.tag == _TABLE:
            yield "[Table]"
            yield from _read_rows(block, " | ")
            yield ""
            continue
        text, boxes = _read_paragraph(block)
        if text.strip():
            style = Paragraph(block, document).style
            level = parse_number(((style and style.name) or "").removeprefix("Heading ")) or 0
            yield f"{'#' * level} {text}" if 1 <= level < 7 else text
        yield from filter(str.strip, map(_read_cell, boxes))


def _write_diagrams(body: Any, part: Any) -> None:
    """Put the texts of a diagram in its place, as a text box of a paragraph each."""
    for place in find_diagrams(body):
        box = place.makeelement(_BOX)
        for text in read_diagram(part, place):
            box.append(block := box.makeelement(_PARAGRAPH))
            block.append(words := block.makeelement(_TEXTS[0]))
            words.text = text
        place.addprevious(box)
        place.getparent().remove(place)


def _find_blocks(parent: Any) -> Iterator[Any]:
    """Yield the paragraphs and tables in order, also those in content controls and the like."""
    for child in parent.iterchildren("*"):
        if child.tag in (_PARAGRAPH, _TABLE):
            yield child
        elif child.tag not in _GONE:
            yield from _find_blocks(child)


def _read_paragraph(paragraph: Any) -> tuple[str, list[Any]]:
    """Return the text and the text boxes of a paragraph."""
    words, boxes = list[str](), list[Any]()
    _gather(paragraph, words, boxes)
    return "".join(words), boxes


def _gather(element: Any, words: list[str], boxes: list[Any]) -> None:
    for child in element.iterchildren("*"):
        if child.tag in _TEXTS:
            words.append(child.text or "")
        elif child.tag == _BOX:
            boxes.append(child)
        elif (mark := _MARKS.get(child.tag)) is not None:
            words.append(mark)
        elif child.tag not in _GONE:
            _gather(child, words, boxes)


def _read_rows(table: Any, between: str) -> Iterator[str]:
    """Yield the rows; the text of a merged cell stands in each of its places."""
    above: list[str] = []
    for row in _find_inside(table, f"{_WORD}tr"):
        cells: list[str] = []
        for cell in _find_inside(row, f"{_WORD}tc"):
            merged, place = cell.find(f"{_WORD}tcPr/{_WORD}vMerge"), len(cells)
            goes_on = merged is not None and merged.get(f"{_WORD}val", "continue") == "continue"
            text = above[place] if goes_on and place < len(above) else _read_cell(cell)
            cells += [text] * _read_span(cell)
        yield render_row(cells, between)
        above = cells


def _find_inside(parent: Any, tag: str) -> Iterator[Any]:
    """Yield the rows of a table or the cells of a row, also those in content controls."""
    for child in parent.iterchildren("*"):
        if child.tag == tag:
            yield child
        elif child.tag not in (*_GONE, _PARAGRAPH, _TABLE):
            yield from _find_inside(child, tag)


def _read_span(cell: Any) -> int:
    span = cell.find(f"{_WORD}tcPr/{_WORD}gridSpan")
    count = parse_number(span.get(f"{_WORD}val", "")) if span is not None else None
    return min(max(1, count or 1), MAX_SPAN)


def _read_cell(cell: Any) -> str:
    """Return the text of a cell or box as one text; that of tables in it too."""
    found = list[str]()
    for block in _find_blocks(cell):
        if block.tag == _TABLE:
            found += _read_rows(block, ", ")
            continue
        text, boxes = _read_paragraph(block)
        found += chain((text,), map(_read_cell, boxes))
    return "\n".join(filter(str.strip, found))
