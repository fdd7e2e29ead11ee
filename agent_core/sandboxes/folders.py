"""The folders of a sandbox: the workspace, and below it HOME and the one for temporary files.

Earlier commands may have planted anything, and the gateway may be root: everything is done by
descriptors, and no link is followed.
"""

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.tools.paths import OWN

NOBODY = 65534
KEPT = 86_400.0
"""Seconds without use after which HOME and /tmp begin empty again."""
STATE, HOME, TMP, ALIASES, ETC = "sandbox", "home", "tmp", "bin", "etc"
"""Below the gateway's folder of the workspace; ALIASES: programs under other names; ETC: files that
are written for the sandbox."""
MASK = "masked"
"""An unreadable file beside them that is mounted over hidden files."""
SNAPSHOTS = "snapshots"
BEFORE, AFTER = ".before", ".after"
"""Ends of the names of a turn's snapshots."""
WAITS = 3_600.0
"""Seconds after which a turn whose snapshot has no end counts as one that waits."""
GIT_IGNORE = ".gitignore"
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def prepare(workspace: Path, root: bool) -> None:
    """Create the gateway's folder with HOME and TMP, emptied if the last use is long ago and no
    turn waits, and give the rest to `nobody` if `root` is set. ToolFailed if one is no longer a
    folder."""
    with _open_folder(workspace, None) as top, _open_folder(OWN, top) as own:
        with _open_folder(SNAPSHOTS, own) as snapshots:
            waits = _has_waiting(snapshots)
        with _open_folder(STATE, own) as state:
            old = not waits and _is_old(state)
            if root:  # `nobody` needs access, whatever the gateway's umask
                os.fchmod(own, 0o755)
                os.fchmod(state, 0o755)
            for name in (HOME, TMP):
                if old:
                    shutil.rmtree(name, ignore_errors=True, dir_fd=state)
                with _open_folder(name, state) as folder:
                    if root and os.fstat(folder).st_uid != NOBODY:  # new, or from a snapshot
                        _give_all(folder)
            with _open_folder(ALIASES, state) as aliases, suppress(FileExistsError):
                os.symlink("/usr/bin/python3", "python", dir_fd=aliases)
            with suppress(FileExistsError):
                os.close(os.open(MASK, _NEW, 0, dir_fd=state))
            os.utime(state)
        _hide_from_git(own)
        if root and os.fstat(top).st_uid != NOBODY:
            _give_all(top, OWN)


def hide_from_git(workspace: Path) -> None:
    """Keep the gateway's folder out of repositories of the workspace, if there is one, as `prepare`
    does."""
    with (
        suppress(OSError, ToolFailed),
        _open_known(workspace) as top,
        _open_folder(OWN, top) as own,
    ):
        _hide_from_git(own)


def _hide_from_git(own: int) -> None:
    if GIT_IGNORE not in os.listdir(own):
        with suppress(OSError):  # the disk may be full
            _write(GIT_IGNORE, "*\n", own)


def note_use(workspace: Path) -> None:
    """Note a use of HOME and TMP, if there are any."""
    with suppress(OSError), _open_known(workspace, OWN, STATE) as state:
        os.utime(state, (ambient.now(), ambient.now()))


def will_be_emptied(workspace: Path) -> bool:
    """Return True if HOME or TMP has something that `prepare` would remove now."""
    with suppress(OSError), _open_known(workspace, OWN, SNAPSHOTS) as snapshots:
        if _has_waiting(snapshots):
            return False
    with suppress(OSError), _open_known(workspace, OWN, STATE) as state:
        return _is_old(state) and any(_has_entries(state, name) for name in (HOME, TMP))
    return False


def _is_old(state: int) -> bool:
    return os.fstat(state).st_mtime < ambient.now() - KEPT


def _has_entries(parent: int, name: str) -> bool:
    with suppress(OSError):
        folder = os.open(name, _OPEN, dir_fd=parent)
        try:
            return bool(os.listdir(folder))
        finally:
            os.close(folder)
    return False


@contextmanager
def _open_known(workspace: Path, *names: str) -> Iterator[int]:
    """Open a folder below the workspace, following no link below it. OSError."""
    current = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names:
            parent, current = current, os.open(name, _OPEN, dir_fd=current)
            os.close(parent)
        yield current
    finally:
        os.close(current)


def _has_waiting(snapshots: int) -> bool:
    """Return True if a turn that began a while ago has no end yet: it may wait for a person."""
    names = set(os.listdir(snapshots))
    for name in names:
        if name.endswith(BEFORE) and name.removesuffix(BEFORE) + AFTER not in names:
            with suppress(FileNotFoundError):
                began = os.stat(name, dir_fd=snapshots, follow_symlinks=False).st_mtime
                if began < ambient.now() - WAITS:
                    return True
    return False


def write_etc(workspace: Path, files: Mapping[str, str]) -> None:
    """Write the files to be mounted into the sandbox's /etc, readable by all, replacing what is
    there. After `prepare`; ToolFailed as there."""
    with (
        _open_folder(workspace, None) as top,
        _open_folder(OWN, top) as own,
        _open_folder(STATE, own) as state,
        _open_folder(ETC, state) as etc,
    ):
        os.fchmod(etc, 0o755)
        for name, text in files.items():
            _write(name, text, etc)


def _write(name: str, text: str, parent: int) -> None:
    """Write a file that all may read, whole or not at all. OSError."""
    new = f"{name}.new"
    with suppress(FileNotFoundError):
        os.unlink(new, dir_fd=parent)
    with os.fdopen(os.open(new, _NEW, 0o444, dir_fd=parent), "w") as file:
        os.fchmod(file.fileno(), 0o444)
        file.write(text)
    os.replace(new, name, src_dir_fd=parent, dst_dir_fd=parent)


@contextmanager
def _open_folder(name: str | Path, parent: int | None) -> Iterator[int]:
    """The folder `name` of `parent`, made if it is not there."""
    try:
        try:
            descriptor = os.open(name, _OPEN, dir_fd=parent)
        except (FileNotFoundError, NotADirectoryError):
            if name in (STATE, HOME, TMP, ALIASES, ETC):
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=parent)  # a link or a file created by a command
            os.mkdir(name, dir_fd=parent)
            descriptor = os.open(name, _OPEN, dir_fd=parent)
    except OSError as error:
        shown = name if parent is not None else "The workspace"
        raise ToolFailed(
            f"{shown} is not a folder any more ({error.strerror}); nothing runs until it is one."
        ) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _give_all(top: int, besides: str = "") -> None:
    """Give the folder's content to `nobody`, the folder itself last; except `besides` at its
    top."""
    for here, folders, files, descriptor in os.fwalk(".", dir_fd=top, follow_symlinks=False):
        if here == "." and besides in folders:
            folders.remove(besides)
        for name in (*folders, *files):
            info = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if stat.S_ISDIR(info.st_mode) or info.st_nlink == 1:
                os.chown(name, NOBODY, NOBODY, dir_fd=descriptor, follow_symlinks=False)
    os.fchown(top, NOBODY, NOBODY)
