"""The program that reads one document: `child KIND`, the file as standard input, its text as
standard output."""

import importlib
import io
import resource
import sys
import time
import zipfile
from collections.abc import Iterator
from typing import BinaryIO, cast

from agent_core.documents.limits import (
    CPU,
    CUT,
    MAX_MEMBERS,
    MAX_RATIO,
    MAX_TEXT,
    MAX_UNPACKED,
    MEMORY,
    PATIENCE,
    REFUSED,
)
from agent_core.documents.refusal import Refused

READERS = {
    "pdf": "pdf",
    "docx": "word",
    "odt": "open_document",
    "xlsx": "sheets",
    "pptx": "slides",
    "epub": "book",
    "rtf": "rich_text",
    "eml": "mail",
}


def main() -> int:
    """Read it; the exit code."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU, CPU + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    kind = sys.argv[1]
    source = cast(BinaryIO, sys.stdin.buffer)
    file = io.BytesIO(source.read())
    try:
        if zipfile.is_zipfile(file) and kind != "pdf":
            check_archive(file)
        file.seek(0)
        reader = importlib.import_module(f"agent_core.documents.formats.{READERS[kind]}")
        write(reader.read(file))
    except Refused as refused:
        sys.stderr.write(str(refused))
        return REFUSED
    return 0


def check_archive(file: BinaryIO) -> None:
    """Refuse what unpacks to too much; what its table says is what is unpacked at most."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
    size = sum(member.file_size for member in members)
    packed = sum(member.compress_size for member in members) or 1
    if len(members) > MAX_MEMBERS or size > MAX_UNPACKED or size > packed * MAX_RATIO:
        raise Refused(f"it would unpack to {size >> 20:,} MB.")


def write(lines: Iterator[str | None]) -> None:
    """Write the lines, as many as may be read; None is work that gave none."""
    left, began = MAX_TEXT, time.process_time()
    out = sys.stdout.buffer
    for line in lines:
        text = f"{line}\n" if line is not None else ""
        left -= len(text)
        out.write(text.encode(errors="replace"))
        if left < 0 or time.process_time() - began > PATIENCE:
            out.write(f"{CUT}\n".encode())
            break
    out.flush()


if __name__ == "__main__":
    sys.exit(main())
