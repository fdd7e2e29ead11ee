"""RTF."""

from collections.abc import Iterator
from typing import BinaryIO

from agent_core.documents.formats.tables import render_row
from agent_core.documents.refusal import Refused


def read(file: BinaryIO) -> Iterator[str]:
    """Yield its lines."""
    from striprtf.striprtf import rtf_to_text

    try:
        text = rtf_to_text(  # type: ignore[no-untyped-call]
            file.read().decode("latin-1"), errors="replace"
        )
    except (ValueError, LookupError, IndexError, KeyError) as error:
        raise Refused("it is damaged.") from error
    for line in text.replace("\n|", "|").splitlines():
        yield render_row(line[:-1].split("|")) if line.endswith("|") else line
