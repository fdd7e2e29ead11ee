"""Reads files left by a person or an earlier process, without ever blocking on a pipe or a
device; writes such for the next process."""

import errno
import os
import select
import stat
from pathlib import Path

NULL = os.makedev(1, 3)
"""/dev/null, which people link to in place of an empty file."""


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


def write_whole(path: Path, data: bytes) -> None:
    """Write a file of the data folder that only its owner may read, whole or not at all; its folder
    is made. OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = path.with_suffix(".new")
    with open(new, "wb", opener=_create_private) as file:
        file.write(data)
    os.replace(new, path)


def _create_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def read_piped(path: Path, patience: float) -> bytes:
    """Read a file, or a pipe that another program writes into, as password managers do. OSError,
    also if nothing was written for `patience` seconds."""
    if not stat.S_ISFIFO(path.stat().st_mode):
        return read_plain(path)
    with open(path, "rb", buffering=0, opener=_open_at_once) as pipe:
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        found = b""
        while poll.poll(patience * 1000):
            piece = pipe.read(65_536)
            if piece == b"":
                return found
            found += piece or b""
    raise OSError(errno.ETIMEDOUT, "it is a pipe, and nothing writes into it", str(path))


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
