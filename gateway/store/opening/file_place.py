"""Checks that the files of an open store are still in place. Data written to files that were moved,
removed or replaced meanwhile is lost with the process."""

from pathlib import Path

from gateway.errors import StoreFailed


class FilePlace:
    """The identity of a store's file `path` and its write-ahead log."""

    def __init__(self, path: Path) -> None:
        self._path, self._log = path, path.with_name(f"{path.name}-wal")
        self._known: dict[Path, tuple[int, int]] = {}

    def forget_log(self) -> None:
        """Forget the log: a reopened store may have another one."""
        self._known.pop(self._log, None)

    def check(self) -> None:
        """Raise StoreFailed if a file is missing or is another one than before."""
        for path in (self._path, self._log):
            found = _identify(path)
            if found is not None:
                self._known.setdefault(path, found)
            if found != self._known.get(path):
                why = "was moved, removed or replaced while it is in use"
                raise StoreFailed(f"{path} {why}: put it back, or stop the gateway")


def _identify(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
