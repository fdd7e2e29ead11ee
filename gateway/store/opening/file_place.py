"""Whether the files of an open store still lie where they were opened. What is written to files
that were moved, removed or replaced meanwhile is gone with the process."""

from pathlib import Path

from gateway.errors import StoreFailed


class FilePlace:
    """The file `path` of one store, and its log."""

    def __init__(self, path: Path) -> None:
        self._path, self._log = path, path.with_name(f"{path.name}-wal")
        self._known: dict[Path, tuple[int, int]] = {}

    def forget_log(self) -> None:
        """The store is opened anew: it may have another log."""
        self._known.pop(self._log, None)

    def check(self) -> None:
        """Raise StoreFailed if something else lies there than before, or nothing."""
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
