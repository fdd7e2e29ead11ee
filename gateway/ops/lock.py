"""The data folder: private to its owner, used by one process.

It has an flock and the name of the holder; the kernel releases the lock when the process ends,
however it ends.
"""

import fcntl
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agent_core import ambient
from agent_core.config.plain_files import write_whole
from gateway.ops.store_identity import STORE_ID
from gateway.services.spoilt_files import read_text
from gateway.settings import HOME

AUDIT_KEYS = "audit.key"
UNFINISHED = "restore-unfinished"
"""Marker in the data folder while a restore replaces it: no store is opened meanwhile."""
OWN_FILES = ("turnkeeper.db*", "*.json", "*.toml", "replica_id", STORE_ID, AUDIT_KEYS, "lock")
OWN_FOLDERS = ("outputs", "uploads", "workspaces", "mcp", "browser")
"""The gateway's folders in its data folder: messages, secrets, people's files."""


def make_private(home: Path) -> None:
    """Create the folder, or remove the rights of group and others: a volume, or a folder made by
    systemd or a person, is often open to all. SettingsError if it belongs to somebody else."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            owner = os.fstat(descriptor).st_uid
            if owner != os.geteuid():
                mend = (
                    f"the data folder belongs to another user (uid {owner}), who could read and "
                    "change all of it; choose another, or give it to this user by chown."
                )
                raise HOME.error(str(home), mend)
            os.fchmod(descriptor, 0o700)
        finally:
            os.close(descriptor)
        for path in (
            *(one for name in OWN_FILES for one in home.glob(name)),
            *(home / name for name in OWN_FOLDERS),
        ):
            _close_to_others(path)
    except OSError as error:
        mend = f"the data folder cannot be used ({error.strerror}); choose another."
        raise HOME.error(str(home), mend) from None


def _close_to_others(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # missing, or a link to another place
        return
    try:
        info = os.fstat(descriptor)
        if info.st_uid == os.geteuid() and info.st_mode & 0o077:
            os.fchmod(descriptor, stat.S_IMODE(info.st_mode) & 0o700)
    finally:
        os.close(descriptor)


def was_cut_off(home: Path) -> bool:
    """Return True if a restore was interrupted: the content may be of two stores."""
    return (home / UNFINISHED).exists()


@contextmanager
def hold(home: Path) -> Iterator[None]:
    """Hold the folder, made private; SettingsError names who has it."""
    make_private(home)
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(home / "lock", flags, 0o600)
    except OSError as error:
        mend = f"the data folder cannot be used (lock: {error.strerror}); choose another."
        raise HOME.error(str(home), mend) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise HOME.error(
                str(home),
                "the data folder cannot be used (lock: it is no plain file); choose another.",
            )
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _read_holder(descriptor)
            mend = f"process {holder} works on this folder; stop it, or choose another folder."
            raise HOME.error(str(home), mend) from None
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        except OSError as error:  # for example on a full disk
            mend = f"the data folder cannot be used ({error.strerror})."
            raise HOME.error(str(home), mend) from None
        yield
    finally:
        os.close(descriptor)


def find_holder(home: Path) -> str:
    """Return the id of the process that holds the folder, "" if none does."""
    try:
        descriptor = os.open(home / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # never held by anybody
        return ""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_holder(descriptor)
    finally:
        os.close(descriptor)
    return ""


def _read_holder(descriptor: int) -> str:
    return os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "another"


def replica_id(home: Path, make: Callable[[], str]) -> str:
    """This folder's stable name among replicas; made once."""
    path = home / "replica_id"
    known = read_text(path).strip()
    if not known:
        known = make()
        write_whole(path, known.encode())
    return known


def read_audit_keys(home: Path, given: Sequence[str]) -> tuple[str, ...]:
    """Return `given`, or the keys of the file in the data folder, one a line; creates the file if
    needed. Blocks."""
    path = home / AUDIT_KEYS
    stored = tuple(read_text(path).split())
    if given:
        return (*given, *(key for key in stored if key not in given))
    if not stored:
        stored = (ambient.secret_id() + ambient.secret_id(),)
        write_whole(path, f"{stored[0]}\n".encode())
    return stored
