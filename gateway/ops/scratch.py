"""Folders of a process's own beside what it works on, which no killed process leaves for good: each
has an flock while somebody uses it, and one that nobody holds is removed by who comes next."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def hold_scratch(parent: Path, prefix: str, kept: Container[str] = ()) -> Iterator[Path]:
    """A new folder in `parent`, which goes with the block unless another process holds it then.
    What was left there with that prefix goes first, but for the names `kept`. OSError."""
    remove_left(parent, prefix, kept)
    place = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        descriptor = hold_folder(place)
        try:
            yield place
        finally:
            os.close(descriptor)
    finally:
        _remove_unheld(place)


def hold_folder(place: Path) -> int:
    """An open file that holds the folder until it is closed. OSError if there is none."""
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def remove_left(parent: Path, prefix: str, kept: Container[str] = ()) -> None:
    """Remove the folders of processes that are gone."""
    for place in parent.glob(f"{prefix}*"):
        if place.name not in kept:
            _remove_unheld(place)


def _remove_unheld(place: Path) -> None:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(place, flags)
    except OSError:  # it is gone, or no folder
        return
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(place, ignore_errors=True)
    except BlockingIOError:  # somebody works in it
        return
    finally:
        os.close(descriptor)
