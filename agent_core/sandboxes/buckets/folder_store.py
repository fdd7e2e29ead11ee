"""A folder for snapshots outside of the workspaces: another disk, or one that machines share.

It is the gateway's alone: nothing that runs in a sandbox sees it. Blocks.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from agent_core import ambient

PROBE = "turnkeeper-doctor"
_UNFINISHED = ".unfinished"


class FolderStore:
    """The folder at this path; made when something is stored first."""

    kind = "bucket"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, data: bytes) -> None:
        """Store `data` atomically. OSError."""
        place = self._folder / name
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = self._folder / f"{ambient.new_id()}{_UNFINISHED}"
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as new:
                new.write(data)
                new.flush()
                os.fsync(new.fileno())
            os.replace(part, place)
        except OSError:
            part.unlink(missing_ok=True)
            raise

    def get(self, name: str) -> bytes | None:
        """Return what is stored under this name, None if nothing is. OSError."""
        with suppress(FileNotFoundError):
            return (self._folder / name).read_bytes()
        return None

    def list_names(self, folder: str) -> list[str]:
        """The whole names below a folder. OSError."""
        if not self._folder.is_dir():  # a missing disk is not an empty one
            raise FileNotFoundError(f"{self._folder} is not there")
        found = (self._folder / folder).rglob("*")
        return [str(one.relative_to(self._folder)) for one in found if one.is_file()]

    def remove(self, names: Sequence[str]) -> None:
        """Remove these, ignoring missing ones. OSError."""
        for name in names:
            place = self._folder / name
            place.unlink(missing_ok=True)
            for above in (place.parent, place.parent.parent):
                with suppress(OSError):  # the folder has other content
                    if above != self._folder:
                        above.rmdir()

    def find(self, workspace: Path) -> str | None:
        """Return the name under which snapshots of a workspace are stored, independent of its
        folder."""
        return ""

    def erase(self, workspace: str, what: str = "") -> None:
        """Remove everything stored of a workspace. OSError."""
        self.remove(self.list_names(workspace))

    def probe(self) -> None:
        """Test writing, reading and removing; also remove leftovers of killed processes.
        OSError."""
        for left in self._folder.glob(f"*{_UNFINISHED}"):
            if left.stat().st_mtime < ambient.now() - 3_600.0:
                left.unlink(missing_ok=True)
        self.put(PROBE, b"1")
        if self.get(PROBE) != b"1":
            raise OSError("what was written cannot be read back")
        self.remove([PROBE])
