"""The program that reads one document: `child WHAT ENDING`, the file as standard input, its text
as standard output. ENDING is that of its name, if documents are called so."""

import importlib
import io
import resource
import sys
import time
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO, cast

from agent_core.documents.containers import explain_container, open_archive
from agent_core.documents.damage import stop_at_damage
from agent_core.documents.formats.salvage import salvage_text
from agent_core.documents.kinds import NAMES, Kind, find_named_kind
from agent_core.documents.limits import (
    ABSENT,
    CPU,
    CUT,
    DAMAGED,
    MAX_TEXT,
    MEMORY,
    PATIENCE,
    REFUSED,
)
from agent_core.documents.refusal import Refused

READERS: dict[Kind, str] = {
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
    what, ending = sys.argv[1], (*sys.argv[2:], "")[0]
    source = cast(BinaryIO, sys.stdin.buffer)
    file = io.BytesIO(source.read())
    try:
        kind = find_reader(file, what, find_named_kind(ending))
        file.seek(0)
        reader = importlib.import_module(f"agent_core.documents.formats.{READERS[kind]}")
        lines = stop_at_damage(reader.read(file), DAMAGED, from_start=False)
        write(chain(tell_other(kind, ending), salvage_text(lines, file, kind)))
    except Refused as refused:
        sys.stderr.write(str(refused))
        return REFUSED
    except ImportError:
        return ABSENT
    return 0


def find_reader(file: io.BytesIO, what: str, named: Kind | None) -> Kind:
    """The kind of document; raises Refused."""
    if what == "ole":
        raise Refused(explain_container(file.getvalue()))
    return open_archive(file, named) if what == "zip" else cast(Kind, what)


def tell_other(kind: Kind, ending: str) -> Iterator[str]:
    """A line about a name that says something else."""
    if ending and find_named_kind(ending) != kind:
        yield f"[Its name ends in .{ending}, but it is {NAMES[kind]}.]"


def write(lines: Iterator[str | None]) -> None:
    """Write the lines up to the limit; None stands for work without a line."""
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
