"""Owners of sandboxes and folders, by which leftovers of killed gateways are recognised.

A process's own folder is locked by flock while it is used; an unlocked one is removed by the next
process.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from agent_core.sandboxes.folders import NOBODY

TRIAL = ".turnkeeper-trial-"
"""Prefix of folders for a trial, among other programs' temporary files."""
TRIES = 20
"""Attempts to create a folder and lock it before another process removes it as a leftover."""
_REMOVE = partial(shutil.rmtree, ignore_errors=True)


def describe_owner(pid: int | None = None) -> str:
    """Describe a process, this one by default: boot id, process namespace, number, start time; ""
    if it is gone."""
    pid = os.getpid() if pid is None else pid
    try:
        born = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{os.readlink('/proc/self/ns/pid')}/{pid}/{born}"


def is_owner_gone(owner: str) -> bool | None:
    """Return True if the process described by `describe_owner` has ended; None if that cannot be
    told here."""
    here = describe_owner().rsplit("/", 2)[0]
    place, _, rest = owner.rpartition("/")
    pid = place.rpartition("/")[2]
    if owner.startswith(f"{here}/") and pid.isdigit() and rest:
        return describe_owner(int(pid)) != owner
    return None


@contextmanager
def hold_scratch(parent: Path, prefix: str, kept: Container[str] = ()) -> Iterator[Path]:
    """Create a locked folder in `parent`, removed at the end of the block unless another process
    holds it then. Leftovers with that prefix are removed first, except those named `kept`. OSError.
    """
    remove_left(parent, prefix, kept)
    place, descriptor = make_held(parent, prefix)
    try:
        try:
            yield place
        finally:
            os.close(descriptor)
    finally:
        _remove_unheld(place)


@contextmanager
def hold_trial() -> Iterator[Path]:
    """A folder for temporary files to try something in. OSError."""
    with hold_scratch(Path(tempfile.gettempdir()), TRIAL) as place:
        yield place


def make_held(parent: Path, prefix: str) -> tuple[Path, int]:
    """Create a folder and lock it; another process may remove it in between. Return it with the
    open file that holds the lock. OSError."""
    for left in reversed(range(TRIES)):
        place = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        try:
            descriptor = hold_folder(place)
        except OSError:
            if not left:
                raise
            continue
        if place.exists():
            return place, descriptor
        os.close(descriptor)
    raise OSError(f"no folder stays in {parent}")


def hold_folder(place: Path) -> int:
    """Lock the folder; return the open file that holds the lock. OSError if it does not exist."""
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def remove_left(
    parent: Path,
    prefix: str,
    kept: Container[str] = (),
    remove: Callable[[Path], object] = _REMOVE,
) -> None:
    """Remove the folders of processes that are gone, by `remove`."""
    for place in parent.glob(f"{prefix}*"):
        if place.name not in kept:
            _remove_unheld(place, remove)


def _list_own_users() -> tuple[int, ...]:
    """This process's user, and root's sandboxes' as well: they own what they work in."""
    return (0, NOBODY) if os.geteuid() == 0 else (os.geteuid(),)


def _remove_unheld(place: Path, remove: Callable[[Path], object] = _REMOVE) -> None:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(place, flags)
    except OSError:  # missing, or not a folder
        return
    try:
        if os.fstat(descriptor).st_uid not in _list_own_users():
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove(place)
    except BlockingIOError:  # it is in use
        return
    finally:
        os.close(descriptor)
