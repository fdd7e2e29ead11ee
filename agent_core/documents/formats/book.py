"""EPUB."""

import posixpath
import zipfile
from collections.abc import Iterator
from typing import BinaryIO
from urllib.parse import unquote

from agent_core.documents.damage import stop_at_damage
from agent_core.documents.formats.markup import parse_xml, read_html
from agent_core.documents.refusal import Refused

DAMAGED = "[The rest of this part was not read: it is damaged.]"
_CONTAINER = "META-INF/container.xml"


def read(file: BinaryIO) -> Iterator[str]:
    """The pages in the order of the book's spine."""
    try:
        with zipfile.ZipFile(file) as archive:
            for number, name in enumerate(_list_pages(archive), 1):
                yield f"[Part {number}]"
                yield from stop_at_damage(_read_page(archive, name), DAMAGED)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise Refused("it is no EPUB, or it is damaged.") from error


def _read_page(archive: zipfile.ZipFile, name: str) -> Iterator[str]:
    yield from read_html(archive.read(name))


def _list_pages(archive: zipfile.ZipFile) -> list[str]:
    package = parse_xml(archive.read(_CONTAINER)).find(".//{*}rootfile")
    if package is None:
        raise ValueError("it names no package")
    place = package.attrib["full-path"]
    root = parse_xml(archive.read(place))
    there = {item.attrib["id"]: item.attrib["href"] for item in root.iterfind(".//{*}item")}
    listed = [one.attrib["idref"] for one in root.iterfind(".//{*}itemref")]
    folder, names = posixpath.dirname(place), set(archive.namelist())
    pages = [posixpath.normpath(posixpath.join(folder, unquote(there[one]))) for one in listed]
    if not (found := [page for page in pages if page in names]):
        raise ValueError("it lists no pages")
    return found
