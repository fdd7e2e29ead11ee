"""One process a data folder: an flock, and the name of who holds it. The kernel lets go of it
when the process ends, however it ends."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.settings import SettingsError


@contextmanager
def held(home: Path) -> Iterator[None]:
    """Hold the folder (made if missing, for its owner only); SettingsError names who has it."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        mend = f"the data folder cannot be used ({error.strerror}); choose another."
        raise SettingsError("TURNKEEPER_HOME", str(home), mend) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "another"
            mend = f"process {pid} works on this folder; stop it, or choose another folder."
            raise SettingsError("TURNKEEPER_HOME", str(home), mend) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def replica_id(home: Path, make: Callable[[], str]) -> str:
    """This folder's stable name among replicas; made once."""
    path = home / "replica_id"
    try:
        known = path.read_text().strip()
    except FileNotFoundError:
        known = ""
    if not known:
        known = make()
        path.write_text(known)
    return known
