"""Keeps the lines of a document up to its damage."""

import zlib
from collections.abc import Iterator
from typing import TypeVar
from zipfile import BadZipFile

from agent_core.documents.refusal import Refused

ARCHIVE_FAULTS = (BadZipFile, zlib.error, NotImplementedError, EOFError, ValueError, OSError)
"""Errors of the library at a damaged member of an archive."""
L = TypeVar("L", bound=str | None)


def stop_at_damage(
    lines: Iterator[L], notice: str, *, from_start: bool = True
) -> Iterator[L | str]:
    """Yield the lines up to damage, then `notice`. Without `from_start`, damage before any line is
    raised. Refused, ImportError and MemoryError are no damage."""
    begun = from_start
    try:
        for line in lines:
            yield line
            begun = begun or bool(line)
    except (Refused, ImportError, MemoryError):
        raise
    except Exception:  # boundary: libraries meet damage with errors of any kind
        if not begun:
            raise
        yield notice
