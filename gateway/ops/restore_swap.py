"""Replaces the data folder's content by an unpacked backup: all of it or nothing.

The renames are written down first. The next command in that folder finishes an interrupted restore
before it reads any setting there.
"""

import os
import shutil
from pathlib import Path

import msgspec
from msgspec import Struct

from agent_core import ambient
from agent_core.sandboxes.owners import remove_left
from gateway.declaration import SettingsError
from gateway.ops import lock
from gateway.ops.backup import DATABASE, FILES, FOLDERS, BackupError
from gateway.ops.store_identity import STORE_ID

UNPACKED = ".restore-"


class SwapPlan(Struct, frozen=True, kw_only=True):
    """The planned renames: the names `old` into the folder `aside`, then `new` out of
    `unpacked`."""

    unpacked: str
    aside: str
    old: tuple[str, ...]
    new: tuple[str, ...]


def is_unpacked(home: Path, name: str) -> bool:
    """Return True if the name is a backup unpacked in the data folder."""
    place = home / name
    return place.parent == home and name.startswith(UNPACKED) and place.is_dir()


def find_content(home: Path) -> tuple[str, ...]:
    """Return the names in the data folder that a restore would replace."""
    wanted = (f"{DATABASE}-wal", f"{DATABASE}-shm", DATABASE, STORE_ID, *FILES, *FOLDERS)
    return tuple(name for name in wanted if os.path.lexists(home / name))


def swap_in(home: Path, unpacked: Path) -> Path | None:
    """Replace the content by the unpacked backup, under the folder's lock and with no store open.
    Return the folder of the old content. BackupError: nothing is changed."""
    try:
        new = sorted(os.listdir(unpacked), key=lambda name: name == DATABASE)
    except OSError as error:
        raise BackupError(f"The unpacked backup is gone: {error}.") from error
    old = find_content(home)
    if mounted := [name for name in old if os.path.ismount(home / name)]:
        words = ", ".join(str(home / name) for name in mounted)
        raise BackupError(f"{words}: a volume of its own cannot be replaced by a restore.")
    stamp = f"{ambient.utc(ambient.now()):%Y%m%dT%H%M%SZ}"
    aside = f"before-restore-{stamp}-{ambient.new_id()}"
    plan = SwapPlan(unpacked=unpacked.name, aside=aside, old=old, new=tuple(new))
    try:
        _write_plan(home, plan)
    except OSError as error:
        raise BackupError(f"Nothing can be restored: {error}.") from error
    _carry_out(home, plan)
    return home / aside if old else None


def finish_cut_off(home: Path) -> bool:
    """Finish an interrupted restore. Return True if there was one; False also if another process
    uses the folder, or it cannot be finished."""
    try:
        with lock.hold(home):
            if not lock.was_cut_off(home):
                return False
            _carry_out(home, _read_plan(home))
    except (SettingsError, msgspec.MsgspecError, BackupError):
        return False
    return True


def remove_leftovers(home: Path) -> None:
    """Remove what interrupted restores unpacked before they replaced anything."""
    remove_left(home, UNPACKED, list_needed(home))


def list_needed(home: Path) -> tuple[str, ...]:
    """Return the unpacked backup that an interrupted restore needs."""
    try:
        return (_read_plan(home).unpacked,)
    except (OSError, msgspec.MsgspecError):
        return ()


def _read_plan(home: Path) -> SwapPlan:
    return msgspec.json.decode((home / lock.UNFINISHED).read_bytes(), type=SwapPlan)


def _write_plan(home: Path, plan: SwapPlan) -> None:
    new = home / f"{lock.UNFINISHED}.new"
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(msgspec.json.encode(plan))
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, home / lock.UNFINISHED)
    _flush_names(home)


def _carry_out(home: Path, plan: SwapPlan) -> None:
    """Do the remaining renames. BackupError if one fails."""
    unpacked, aside = home / plan.unpacked, home / plan.aside
    for name in plan.old:
        if os.path.lexists(home / name) and not os.path.lexists(aside / name):
            aside.mkdir(exist_ok=True, mode=0o700)
            os.replace(home / name, aside / name)
    for name in plan.new:
        if os.path.lexists(unpacked / name):
            os.replace(unpacked / name, home / name)
        elif not os.path.lexists(home / name):
            raise BackupError(f"{unpacked / name} is gone.")
    shutil.rmtree(unpacked, ignore_errors=True)
    _flush_names(home)
    (home / lock.UNFINISHED).unlink()


def _flush_names(home: Path) -> None:
    descriptor = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
