"""No path leaves the workspace: what a path says, where it leads, and how it is opened.

Three steps, because each misses what the next one sees: the words of the path (`refused`), the
place it leads to through links (`resolve`), and an open that follows no link on the way, so that
a folder swapped for a link between the check and the use is caught (`folder`, `open_read`).
"""

import errno
import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from urllib.parse import unquote

from agent_core.errors import ToolFailed

OWN = ".turnkeeper"
"""The workspace's folder that belongs to the gateway: backups and kept outputs."""

_ALIAS = "/workspace"
"""What a sandboxed command calls the workspace; models copy it from there."""

_SECRET = re.compile(
    r"\.env(\..+)?|\.netrc|\.pgpass|\.git-credentials|\.npmrc|\.pypirc|\.htpasswd"
    r"|id_(rsa|dsa|ecdsa|ed25519)|.+\.(pem|p12|pfx|kdbx)|\.(ssh|aws|gnupg|kube|docker)"
)
_HARMLESS = re.compile(r"\.env\.(example|sample|template|dist)")


def is_secret(name: str) -> bool:
    """True if a file or folder of this name usually holds credentials. Spelling variants that
    some file systems take for the same name count: case, trailing dots and spaces."""
    plain = unicodedata.normalize("NFKC", name).casefold().rstrip(" .")
    return bool(_SECRET.fullmatch(plain)) and not _HARMLESS.fullmatch(plain)


def refused(path: str, write: bool = False) -> str:
    """Why the words of `path` forbid it, "" if they do not. Reads no disk."""
    why = leaves(path)
    parts = [part for part in inside(path).split("/") if part not in ("", ".")]
    if why:
        return why
    if any(map(is_secret, parts)):
        return "The path names a file for secrets. Their content stays out of the conversation."
    if write and parts and parts[0].casefold() == OWN:
        return f"The folder {OWN} belongs to the gateway."
    return ""


def leaves(path: str) -> str:
    """Why `path` is no path of the workspace by its words, "" if it is one."""
    if any(unicodedata.category(char) in ("Cc", "Cf", "Cs") for char in path):
        return "The path has control or invisible characters."
    inner = inside(path)
    for form in (inner, unquote(inner), inner.replace("\\", "/")):
        if form.startswith(("/", "~")) or ".." in form.split("/"):
            return "The path leaves the workspace. Write it from the workspace's folder, without .."
    if any(len(os.fsencode(part)) > 255 for part in inner.split("/")) or len(inner) > 1_000:
        return "The path is too long."
    return ""


def inside(path: str) -> str:
    """`path` from the workspace's folder: `/workspace/a` and `a` are the same file."""
    if path == _ALIAS or path.startswith(f"{_ALIAS}/"):
        return path[len(_ALIAS) :].lstrip("/") or "."
    return path or "."


def resolve(workspace: Path, path: str, write: bool = False) -> Path:
    """Where `path` leads, links followed. ToolFailed if that is outside of the workspace, a
    secret, no file or folder, or a file with a second name (a hard link may lead outside)."""
    why = refused(path, write)
    if why:
        raise ToolFailed(why)
    root = Path(os.path.realpath(workspace))
    real = Path(os.path.realpath(root / inside(path)))
    if not real.is_relative_to(root):
        raise ToolFailed(f"{path} is a link that leaves the workspace.")
    why = refused(str(real.relative_to(root)), write)
    if why:
        raise ToolFailed(why)
    try:
        check(real.lstat(), path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise failed(path, error) from None
    return real


def check(info: os.stat_result, path: str) -> None:
    """Refuse what is neither a folder nor a file with one name."""
    if stat.S_ISDIR(info.st_mode):
        return
    if not stat.S_ISREG(info.st_mode):
        raise ToolFailed(f"{path} is not a file (a device, pipe, socket or link).")
    if info.st_nlink > 1:
        raise ToolFailed(
            f"{path} is a hard link, it may belong elsewhere. Make a copy of it first."
        )


@contextmanager
def folder(workspace: Path, real: Path, create: bool = False) -> Iterator[int]:
    """The resolved folder `real`, open: a descriptor reached without following a link.

    What is created belongs to the workspace's owner, so that an unprivileged sandbox can go on
    with it; except in OWN, which stays the gateway's.
    """
    root = Path(os.path.realpath(workspace))
    relative = real.relative_to(root)
    try:
        descriptor = _descend(root, relative.parts, create)
    except OSError as error:
        raise failed(str(relative), error) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def put_output(workspace: Path, name: str, data: bytes) -> str:
    """Write `data` as the file `name` of the workspace's outputs, which stay the gateway's; its path.
    Blocks. No link is followed: on the way it is a ToolFailed, and so is all else that makes the
    write impossible; one in the file's own place makes way."""
    path = f"{OWN}/outputs/{name}"
    real = Path(os.path.realpath(workspace)) / path
    with folder(workspace, real.parent, create=True) as parent:
        try:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(name, flags, 0o600, dir_fd=parent), "wb") as file:
                file.write(data)
        except OSError as error:
            raise failed(path, error) from None
    return path


def _descend(root: Path, parts: tuple[str, ...], create: bool) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    current = os.open(root, flags)
    try:
        owner = os.fstat(current)
        for part in parts:
            made = create and _made(part, current)
            parent, current = current, os.open(part, flags, dir_fd=current)
            os.close(parent)
            if made:
                give(current, owner, parts[0])
    except OSError:
        os.close(current)
        raise
    return current


def _made(name: str, parent: int) -> bool:
    """Make the folder; False if it is there, perhaps since this moment: calls run at once."""
    try:
        os.mkdir(name, 0o755, dir_fd=parent)
    except FileExistsError:
        return False
    return True


def give(descriptor: int, owner: os.stat_result, top: str) -> None:
    """Hand a new file or folder under the top folder `top` to the workspace's `owner`."""
    if os.geteuid() == 0 and top != OWN:
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


def open_read(workspace: Path, path: str) -> BufferedReader:
    """The file `path`, open for reading. A pipe does not block and a swapped link is refused."""
    real = resolve(workspace, path)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    if real == Path(os.path.realpath(workspace)):
        raise ToolFailed(f"{path} is a folder.")
    with folder(workspace, real.parent) as parent:
        try:
            descriptor = os.open(real.name, flags, dir_fd=parent)
        except OSError as error:
            raise failed(path, error) from None
    try:
        info = os.fstat(descriptor)
        check(info, path)
        if stat.S_ISDIR(info.st_mode):
            raise ToolFailed(f"{path} is a folder.")
    except ToolFailed:
        os.close(descriptor)
        raise
    return open(descriptor, "rb")


def failed(path: str, error: OSError) -> ToolFailed:
    """What the operating system said of `path`, for the model."""
    match error.errno:
        case errno.ENOENT:
            return ToolFailed(f"There is no {path}.")
        case errno.ELOOP | errno.ENOTDIR:
            return ToolFailed(f"{path} goes through a link or a file, not a folder.")
        case errno.EISDIR:
            return ToolFailed(f"{path} is a folder.")
        case _:
            return ToolFailed(f"{path} cannot be used: {os.strerror(error.errno or 0)}.")
