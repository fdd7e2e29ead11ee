"""Checks that the files of a store are whole and in place. Data written to files that were moved,
removed, replaced, emptied or cut short meanwhile is lost with the process."""

import os
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

from gateway.errors import StoreFailed, StoreUnfit

_INDEX = struct.Struct("=14xHI")
"""Head of the index of a write-ahead log: the size of a page, the number of its frames."""
_LOG_HEAD, _FRAME_HEAD = 32, 24


class FilePlace:
    """The identity of a store's file `path` and its write-ahead log."""

    def __init__(self, path: Path) -> None:
        self._path, self._log = path, path.with_name(f"{path.name}-wal")
        self._index = path.with_name(f"{path.name}-shm")
        self._known: dict[Path, tuple[int, int]] = {}
        self._held: dict[tuple[int, int], int] = {}
        """Descriptors of indexes, open until all connections are closed: closing any descriptor of
        a file drops the locks that SQLite has on it."""

    def close(self) -> None:
        """Close what is held; all connections of this process are closed."""
        while self._held:
            os.close(self._held.popitem()[1])

    def prepare(self, page_size: int) -> None:
        """Check the file before it is opened, and create a missing one at its first opening.
        StoreFailed; StoreUnfit for an empty file, or a missing one with a log: SQLite would take it
        for a new store, and remove the log, which may hold all its content."""
        self._known.pop(self._log, None)  # a reopened store may have another one
        lacks = ""
        if self._path in self._known:
            self._check_same(self._path)
            self.check_whole()
        elif os.path.lexists(self._path):
            lacks = "" if self._path.stat().st_size else "is empty, though it was not made so"
        elif self._log.exists() and self._log.stat().st_size:
            lacks = f"is missing, while its log {self._log.name} is there"
        else:
            _create(self._path, page_size)
        if lacks:
            raise StoreUnfit(
                f"{self._path} {lacks}: put it back, restore a backup by `turnkeeper restore FILE"
                f" --force`, or remove it and {self._log.name} to begin with an empty store"
            )

    def check(self) -> None:
        """Raise StoreFailed if a file is missing, is another one than before, or lacks content."""
        for path in (self._path, self._log):
            self._check_same(path)
        self.check_whole()

    def check_whole(self) -> None:
        """Raise StoreFailed if the files lack content."""
        if (found := _look(self._path)) is not None and found.st_size == 0:
            raise StoreFailed(f"{self._path} was emptied while it is in use: restore a backup")
        if self._is_log_cut():
            why = "was cut short while it is in use, what it held is lost: restart the gateway"
            raise StoreFailed(f"{self._log} {why}")

    def _is_log_cut(self) -> bool:
        """Return True if the log is shorter than its index says."""
        for _ in range(2):  # it may be emptied in between, its index first
            try:
                page, frames = _INDEX.unpack(os.pread(self._hold_index(), _INDEX.size, 0))
                size = os.stat(self._log).st_size
            except (OSError, struct.error):
                return False
            page = page if page > 1 else 65_536
            if not frames or size >= _LOG_HEAD + frames * (_FRAME_HEAD + page):
                return False
        return True

    def _hold_index(self) -> int:
        """The descriptor of the present index."""
        info = os.stat(self._index)
        name = (info.st_dev, info.st_ino)
        if name not in self._held:
            self._held[name] = os.open(self._index, os.O_RDONLY | os.O_CLOEXEC)
        return self._held[name]

    def _check_same(self, path: Path) -> None:
        info = _look(path)
        found = (info.st_dev, info.st_ino) if info is not None else None
        if found is not None:
            self._known.setdefault(path, found)
        if found != self._known.get(path):
            why = "was moved, removed or replaced while it is in use"
            raise StoreFailed(f"{path} {why}: put it back, or stop the gateway")


def _look(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _create(path: Path, page_size: int) -> None:
    """Create the file with a first page in it: one that is found empty later was emptied."""
    new = path.with_name(f"{path.name}.new")
    with closing(sqlite3.connect(":memory:")) as empty:
        empty.execute(f"PRAGMA page_size = {page_size}")
        empty.execute("PRAGMA user_version = 0")
        content = empty.serialize()
    new.touch(mode=0o600)
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
