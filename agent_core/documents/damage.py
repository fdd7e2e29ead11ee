"""Keeps the lines of a document up to its damage."""

import zlib
from collections.abc import Iterator
from typing import TypeVar
from zipfile import BadZipFile

from agent_core.documents.refusal import Refused

ARCHIVE_FAULTS = (BadZipFile, zlib.error, NotImplementedError, EOFError, ValueError, OSError)
"""Errors of the library at a damaged member of an archive."""
L = TypeVar("L", bound=str | None)


def keep_begun(lines: Iterator[L], told: str, *, early: bool = True) -> Iterator[L | str]:
    """The lines up to damage, and then `told`. Raises what tells of more than damage, and without
    `early` an error before any line."""
    begun = early
    try:
        for line in lines:
            yield line
            begun = begun or bool(line)
    except (Refused, ImportError, MemoryError):
        raise
    except Exception:  # boundary: libraries meet damage with errors of any kind
        if not begun:
            raise
        yield told
