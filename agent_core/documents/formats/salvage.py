"""Documents with damaged parts: the text of the parts that hold it, whatever the others are."""

import re
import zipfile
from collections.abc import Iterator
from typing import BinaryIO

from lxml import etree

from agent_core.documents.damage import ARCHIVE_FAULTS
from agent_core.documents.formats.markup import parse_xml, read_html, read_tree
from agent_core.documents.formats.sheets import MAX_COLUMNS
from agent_core.documents.formats.tables import render_row
from agent_core.documents.kinds import Kind
from agent_core.text import parse_number

TOLD = "[Parts of this document are damaged. This is the text that could be read without them.]"
MAX_PART = 8 << 20
"""Bytes of a part that are read."""
_CHUNK = 4_096
_SHARED = "xl/sharedStrings.xml"
_TEXTS: dict[Kind, re.Pattern[str]] = {
    "docx": re.compile(r"word/document\d*\.xml"),
    "xlsx": re.compile(r"xl/worksheets/[^/]+\.xml"),
    "pptx": re.compile(r"ppt/(slides|notesSlides)/[^/]+\.xml"),
    "odt": re.compile(r"content\.xml"),
    "epub": re.compile(r".*\.x?html?", re.IGNORECASE),
}
"""Matches the names of the parts with text."""


def salvage_text(lines: Iterator[str | None], file: BinaryIO, kind: Kind) -> Iterator[str | None]:
    """The lines; if damage prevents the first one, the text of the parts that can be read."""
    try:
        first = next(lines, None)
    except (ImportError, MemoryError):
        raise
    except Exception:  # boundary: libraries meet damage with errors of any kind
        saved = read(file, kind)
        if (told := next(saved, None)) is None:
            raise
        first, lines = told, saved
    yield first
    yield from lines


def read(file: BinaryIO, kind: Kind) -> Iterator[str]:
    """Yield the lines, after one that tells of damage; nothing if there is no text. `kind`: one
    that is an archive."""
    wanted, begun = _TEXTS.get(kind), False
    if wanted is None or not zipfile.is_zipfile(file):
        return
    with zipfile.ZipFile(file) as archive:
        shared = _read_shared(archive) if kind == "xlsx" else []
        for name in sorted(filter(wanted.fullmatch, set(archive.namelist())), key=_sort_key):
            for number, line in enumerate(_read_part(read_member(archive, name), kind, shared)):
                if not begun:
                    yield TOLD
                if not number:
                    yield f"[{name}]"
                begun = True
                yield line


def read_member(archive: zipfile.ZipFile, name: str, most: int = MAX_PART) -> bytes:
    """Return the bytes of a file up to its damage; a wrong checksum is none."""
    found = bytearray()
    try:
        with archive.open(name) as member:
            member._expected_crc = None  # type: ignore[attr-defined]  # private: the checksum
            while len(found) < most and (chunk := member.read(_CHUNK)):
                found += chunk
    except (*ARCHIVE_FAULTS, KeyError):
        pass
    return bytes(found[:most])


def _read_part(data: bytes, kind: Kind, shared: list[str]) -> Iterator[str]:
    try:
        if kind == "epub":
            yield from read_html(data)
        else:
            root = parse_xml(data, recover=True)
            yield from _read_sheet(root, shared) if kind == "xlsx" else read_tree(root)
    except ValueError:
        return


def _read_shared(archive: zipfile.ZipFile) -> list[str]:
    try:
        root = parse_xml(read_member(archive, _SHARED), recover=True)
    except ValueError:
        return []
    return ["".join(one.itertext("{*}t")) for one in root.iterfind("{*}si")]


def _read_sheet(root: etree._Element, shared: list[str]) -> Iterator[str]:
    for row in root.iter("{*}row"):
        cells: list[str] = []
        for cell in row.iterfind("{*}c"):
            column = min(_find_column(cell.get("r", "")), MAX_COLUMNS)
            cells += [""] * (column - 1 - len(cells))
            cells.append(_read_cell(cell, shared))
        if text := render_row(cells):
            yield f"{row.get('r', '?')}: {text}"


def _read_cell(cell: etree._Element, shared: list[str]) -> str:
    """Return the cell's text; a formula without a stored value as written."""
    if cell.get("t") == "inlineStr":
        return "".join(cell.itertext("{*}t"))
    value, formula = cell.findtext("{*}v"), cell.findtext("{*}f")
    if cell.get("t") == "s" and value is not None:
        number = parse_number(value)
        known = number is not None and 0 <= number < len(shared)
        return shared[number] if known and number is not None else "(a text that is damaged)"
    return value or (f"={formula}" if formula else "")


def _find_column(place: str) -> int:
    """Return the number of the column of a cell such as AB3, 0 if there is none."""
    number = 0
    for letter in place.rstrip("0123456789")[:4]:
        number = number * 26 + (ord(letter) - 64 if "A" <= letter <= "Z" else 0)
    return number


def _sort_key(name: str) -> tuple[str, int]:
    """Return a key by which slide 10 follows slide 9."""
    number = re.search(r"(\d{1,9})\.\w+$", name)
    return (name[: number.start()], int(number[1])) if number else (name, 0)
