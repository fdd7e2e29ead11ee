"""Files that a person or an earlier life left: read at once, whatever stands in their place."""

import errno
import os
import stat
from pathlib import Path

NULL = os.makedev(1, 3)
"""/dev/null, to which people link what shall be empty."""


def read_plain(path: Path, most: int = -1) -> bytes:
    """The bytes of a file, `most` of them at most. OSError, also for a pipe or a device, which
    would be waited for, and with it everything else."""
    with open(path, "rb", opener=_open_at_once) as file:
        info = os.fstat(file.fileno())
        if stat.S_ISCHR(info.st_mode) and info.st_rdev == NULL:
            return b""
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EINVAL, "it is no plain file", str(path))
        return file.read(most)


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
