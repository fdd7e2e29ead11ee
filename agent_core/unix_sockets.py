"""Unix sockets at paths of any length: the kernel takes an address of 107 bytes at most."""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

MAX_ADDRESS = 100
"""Bytes of the longest path that is used as it is."""


def bind_socket(path: Path) -> socket.socket:
    """Return a new stream socket bound at `path`, which does not listen yet. OSError."""
    new = socket.socket(socket.AF_UNIX)
    try:
        with open_address(path) as address:
            new.bind(address)
    except BaseException:
        new.close()
        raise
    return new


@contextlib.contextmanager
def open_address(path: Path) -> Iterator[str]:
    """The address of the socket at `path`, as long as this is entered: by way of its open folder
    where the path is too long for one. OSError."""
    if len(os.fsencode(path)) <= MAX_ADDRESS:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
