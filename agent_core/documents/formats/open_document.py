"""OpenDocument's ODT."""

import zipfile
from collections.abc import Iterator
from typing import BinaryIO

from agent_core.documents.formats.markup import read_xml
from agent_core.documents.refusal import Refused


def read(file: BinaryIO) -> Iterator[str]:
    """Yield its paragraphs and the cells of its tables."""
    try:
        with zipfile.ZipFile(file) as archive:
            content = archive.read("content.xml")
        yield from read_xml(content)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise Refused("it is no OpenDocument text, or it is damaged.") from error
