"""The room left in a workspace for what the gateway writes there: attachments, and tools' files.

Commands are watched by their sandbox; this is the same limit for everything else. Old copies for
rollback count, snapshots do not, which have a limit of their own.
"""

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from agent_core import ambient
from agent_core.errors import ToolFailed

MAX_BYTES = 5 << 30
"""Bytes of a workspace, with HOME and /tmp of its sandbox."""
LEAST = 4096
"""Bytes that a file counts for at least, as in a sandbox."""
SECONDS_KNOWN, SECONDS_TO_MEASURE = 30.0, 5.0
MAX_KNOWN = 1_000


class _Room(Struct):
    """Bytes left, as known `until` then."""

    left: int
    until: float


_rooms: dict[str, _Room] = {}
_lock = threading.Lock()


def take(workspace: Path, size: int, without: str) -> None:
    """Take room for `size` more bytes; the content of the folder `without` does not count.
    ToolFailed if they are not left. Blocks: measures now and then, and before it refuses."""
    root, size = os.path.realpath(workspace), max(size, LEAST)
    with _lock:
        known, now = _rooms.get(root), ambient.monotonic()
        if known is not None and known.until > now and known.left >= size:
            known.left -= size
            return
    left = MAX_BYTES - _measure(root, f"{root}/{without}")
    with _lock:
        _rooms.pop(root, None)
        if left < size:
            raise ToolFailed(
                f"The workspace would have more than {MAX_BYTES / (1 << 30):g} GB with it. "
                "Delete files that are not needed any more, then try again."
            )
        while len(_rooms) >= MAX_KNOWN:
            del _rooms[next(iter(_rooms))]
        _rooms[root] = _Room(left - size, ambient.monotonic() + SECONDS_KNOWN)


def measure_rest(source: BinaryIO) -> int:
    """Return the bytes of an open file from its current position on."""
    here = source.tell()
    size = source.seek(0, os.SEEK_END) - here
    source.seek(here)
    return size


def _measure(root: str, without: str) -> int:
    """Return the bytes on disk; fewer where counting takes too long. By path, as a folder swapped
    for a link leads to no more than another number."""
    total, left, until = 0, [root], ambient.monotonic() + SECONDS_TO_MEASURE
    while left and total <= MAX_BYTES and ambient.monotonic() < until:
        with suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                if entry.path == without:
                    continue
                with suppress(OSError):
                    total += max(entry.stat(follow_symlinks=False).st_blocks * 512, LEAST)
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
    return total
