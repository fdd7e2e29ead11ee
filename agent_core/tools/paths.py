"""Keeps paths inside the workspace: by their words, by where they lead, and by how they are opened.

Three steps, because each misses what the next one sees: the words of the path (`refused`), the
place it leads to through links (`resolve`), and an open that follows no link on the way, so that a
folder swapped for a link between the check and the use is caught (`folder`, `open_read`).

A workspace belongs to the commands that run in it, which may plant anything anywhere. So nothing
else in the product touches its files by path: everything goes through here, by descriptors.
"""

import errno
import hashlib
import os
import re
import stat
import tempfile
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

from msgspec import Struct

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.phrases import Phrase, phrase
from agent_core.text import escape_name, file_name, unescape_name
from agent_core.tools import room
from agent_core.tools.secret_files import holds_settings, names_secret_file

OWN = ".turnkeeper"
"""The workspace's folder that belongs to the gateway: backups and kept outputs."""

_UNFINISHED = f"{OWN}/snapshots/unfinished"
"""Temporary files are beside the snapshots, which no command sees: one may hold secrets."""
MAX_UNFINISHED = 3_600.0
"""Seconds that a file is being written, at most."""

_ALIAS = "/workspace"
"""The workspace's path in a sandbox; models copy it from there."""

MAX_ENTRIES, MAX_SECONDS = 50_000, 5.0
"""Maximum entries and seconds of one walk of a workspace."""
MAX_SAME_NAME = 10_000
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PIECE = 1 << 20

_TEMPORARY = re.compile(r"\.[0-9A-Za-z]{19}\.tmp")
_SCHEME = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]{0,63}:[\\/]|[A-Za-z]:$|[A-Za-z]:[^/]{0,255}\\"
    r"|(?:file|data|zip|jar|php):(?! ?\w[\w .-]{0,100}\.\w{1,8}\Z)"
    r"|\$\{?[A-Z_]+\}?(/|$)|%[A-Z_]+%",
    re.IGNORECASE,
)
"""Matches what other programs take for a way out: a URL, a drive, a variable; not the plain name of
a file, such as `data:2024.csv`."""
_DRAFT = re.compile(r"~\$.*|~\w{1,80}\.[A-Za-z]{2,4}", re.DOTALL)
_STEP = re.compile(r"[\w.@+-][\w .@+-]*")
"""Matches a folder's name that means the same to every reader."""
_UNICODE = re.compile(r"%u([0-9a-fA-F]{4})")
_SLASHES = dict.fromkeys(map(ord, "\\\u2044\u2215\u2216\u29f5\u29f8\u29f9"), "/")
"""Characters that some programs or readers take for a slash."""
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"
_JOINED = frozenset({"Lo", "Mn", "Mc", "So", "Sk"})
"""Letters without a case and pictures: no name that means something to a program has them."""


def why_refused(path: str, write: bool = False) -> Phrase | None:
    """Return why the words of `path` forbid it, None if they do not. Reads no disk."""
    why = leaves(path)
    parts = [
        part for part in unescape_name(locate_inside(path)).split("/") if part not in ("", ".")
    ]
    if why:
        return why
    if _SCHEME.match(path):
        return phrase("why_outside")
    if any(map(names_secret_file, _read_forms(unescape_name(locate_inside(path))))):
        return phrase("why_secret_file")
    if write and parts and parts[0].casefold() == OWN:
        return phrase("why_owned", folder=OWN)
    return None


def leaves(path: str) -> Phrase | None:
    """Return why `path` is no path of the workspace by its words, None if it is one."""
    if _hides(path):
        return phrase("why_hidden")
    inner = locate_inside(path)
    for form in _read_forms(inner):
        if _hides(form):
            return phrase("why_hidden")
        if _is_rooted(form.lstrip(" ")) or any(map(_climbs, form.split("/"))):
            return phrase("why_outside")
    if any(len(os.fsencode(part)) > 255 for part in inner.split("/")) or len(inner) > 1_000:
        return phrase("why_long_path")
    return None


def _hides(text: str) -> bool:
    """Return True for invisible characters, except those that join letters or emoji."""
    return any(
        unicodedata.category(char) in _HIDDEN and not (char in _JOINERS and _joins(text, at))
        for at, char in enumerate(text)
    )


def _joins(text: str, at: int) -> bool:
    around = text[at - 1 : at] + text[at + 1 : at + 2]
    return len(around) == 2 and all(
        not char.isascii() and unicodedata.category(char) in _JOINED for char in around
    )


def _read_forms(path: str) -> tuple[str, ...]:
    """`path` as programs may read it that decode, or take other signs for a separator."""
    forms = [path]
    for _ in range(3):
        decoded = _UNICODE.sub(lambda found: chr(int(found[1], 16)), forms[-1])
        forms.append(unquote(decoded, errors="surrogateescape"))
    forms += [unicodedata.normalize("NFKC", form) for form in forms if not form.isascii()]
    forms += [form.translate(_SLASHES) for form in forms]
    return tuple(dict.fromkeys(forms))


def _is_rooted(path: str) -> bool:
    """Return True for an absolute path; `~$letter.docx` and `~draft.md` of editors are names."""
    return path.startswith("/") or (path.startswith("~") and not _DRAFT.fullmatch(path))


def _climbs(part: str) -> bool:
    """The part leads upwards, here or on a system that drops its blanks and further dots."""
    bare = part.partition(";")[0].strip(" ")
    return bare.startswith("..") and not bare.strip(" .")


def locate_inside(path: str) -> str:
    """`path` from the workspace's folder: `/workspace/a`, `b/../a` and `a` are the same file."""
    if path == _ALIAS or path.startswith(f"{_ALIAS}/"):
        path = path[len(_ALIAS) :].lstrip("/")
    return (_fold(path) if ".." in path else path) or "."


def _fold(path: str) -> str:
    """`path` without each name that the next part takes back; as it is where one climbs out."""
    if path.startswith("/"):
        return path
    kept: list[str] = []
    for part in path.split("/"):
        if part == ".." and kept and _STEP.fullmatch(kept[-1]):
            kept.pop()
        elif _climbs(part):
            return path
        elif part not in ("", "."):
            kept.append(part)
    return "/".join(kept)


def has_steps_up(path: str) -> bool:
    """Return True if a part of `path` is `..`. After a link, a program steps up elsewhere."""
    return ".." in path.split("/")


def resolve(workspace: Path, path: str, write: bool = False) -> Path:
    """Return where `path` leads, following links.

    ToolFailed if that is outside of the workspace, a secret, no file or folder, or a file with a
    second name (a hard link may lead outside); and, to be written, settings that the path does not
    name: the policy judged another file.
    """
    if why := why_refused(path, write):
        raise ToolFailed(str(why))
    root = Path(os.path.realpath(workspace))
    try:
        real = Path(os.path.realpath(root / unescape_name(locate_inside(path))))
    except OSError as error:  # a link is swapped for a file just now
        raise as_tool_failure(path, error) from None
    if not real.is_relative_to(root):
        raise ToolFailed(f"{path} is a link that leaves the workspace.")
    inner = display_path(real.relative_to(root))
    if why := why_refused(inner, write):
        raise ToolFailed(str(why))
    if write and holds_settings(inner) and not holds_settings(locate_inside(path)):
        raise ToolFailed(
            f"{path} is a link to {inner}, which programs obey unasked. Name {inner}, so that "
            "a person is asked about it."
        )
    try:
        check(real.lstat(), path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise as_tool_failure(path, error) from None
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


def display_path(path: Path | str) -> str:
    """`path` as it is shown; `resolve` takes it so."""
    return escape_name(str(path))


def make(workspace: Path) -> None:
    """Make the workspace's own folder if it is not there."""
    workspace.mkdir(parents=True, exist_ok=True)


def is_made(workspace: Path) -> bool:
    """Return True if the workspace's folder exists: most conversations never need one."""
    return os.path.isdir(workspace)


def identify(workspace: Path) -> tuple[int, int] | None:
    """Return the identity of the workspace's folder, whatever its name; None if there is none."""
    with suppress(OSError):
        info = os.stat(workspace)
        return info.st_dev, info.st_ino
    return None


def read_changes(workspace: Path, names: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return inode and time of change, in nanoseconds, of these paths of the workspace, without
    missing ones. It tells whether they are unchanged, and no more."""
    found, root = dict[str, tuple[int, int]](), os.path.realpath(workspace)
    for name in names:
        with suppress(OSError):
            info = os.lstat(os.path.join(root, name))
            found[name] = info.st_ino, info.st_ctime_ns
    return found


def scratch(workspace: Path) -> BinaryIO:
    """Open an unnamed file beside the workspace, for data from outside; it is gone when it is
    closed."""
    workspace.parent.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryFile(dir=workspace.parent)


def take_room(workspace: Path, size: int) -> None:
    """Take room for `size` bytes to be written in the workspace. ToolFailed if it is full."""
    room.take(workspace, size, f"{OWN}/snapshots")


def status(workspace: Path, real: Path) -> os.stat_result | None:
    """Return the status of the resolved path `real`, None if it is missing. No link is followed."""
    root = Path(os.path.realpath(workspace))
    try:
        info = os.lstat(real)  # fast where nothing exists
        if real == root:
            return info
        with folder(workspace, real.parent) as parent:
            return os.stat(real.name, dir_fd=parent, follow_symlinks=False)
    except (ToolFailed, OSError):
        return None


def is_file(workspace: Path, real: Path) -> bool:
    """Return True if the resolved path is a file, not a link to one."""
    info = status(workspace, real)
    return info is not None and stat.S_ISREG(info.st_mode)


def is_folder(workspace: Path, real: Path) -> bool:
    """Return True if the resolved path is a folder, not a link to one."""
    info = status(workspace, real)
    return info is not None and stat.S_ISDIR(info.st_mode)


def remove(workspace: Path, real: Path) -> None:
    """Remove the file at the resolved place, or a link in its place. OSError, ToolFailed."""
    with folder(workspace, real.parent) as parent:
        os.unlink(real.name, dir_fd=parent)
        os.fsync(parent)


def remove_folder(workspace: Path, real: Path) -> None:
    """Remove the empty folder at the resolved place. OSError, ToolFailed."""
    with folder(workspace, real.parent) as parent:
        os.rmdir(real.name, dir_fd=parent)


def read_link(workspace: Path, real: Path) -> str:
    """Return the target of the link at the resolved path, "" if there is none."""
    try:
        with folder(workspace, real.parent) as parent:
            return os.readlink(real.name, dir_fd=parent)
    except (OSError, ToolFailed):
        return ""


def put_link(workspace: Path, real: Path, target: str) -> None:
    """Make the resolved place a link, in place of a file or link. OSError, ToolFailed."""
    with folder(workspace, real.parent, create=True) as parent:
        with suppress(FileNotFoundError):
            os.unlink(real.name, dir_fd=parent)
        os.symlink(target, real.name, dir_fd=parent)


def put_file(workspace: Path, real: Path, data: bytes, mode: int) -> None:
    """Write the resolved place anew, by an unfinished file, so that there is never half of one; it
    belongs to the workspace's owner. Nothing is forced to disk. OSError, ToolFailed."""
    root, temporary = Path(os.path.realpath(workspace)), temporary_name()
    with (
        folder(workspace, real.parent, create=True) as parent,
        open_unfinished(workspace) as unfinished,
    ):
        descriptor = os.open(temporary, _NEW, 0o600, dir_fd=unfinished)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                os.fchmod(file.fileno(), mode & 0o777)
                give(file.fileno(), os.stat(root), real.relative_to(root).parts[0])
            os.replace(temporary, real.name, src_dir_fd=unfinished, dst_dir_fd=parent)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=unfinished)
            raise


@contextmanager
def open_unfinished(workspace: Path) -> Iterator[int]:
    """Open the folder for temporary files, where leftovers of a kill do no harm. OSError,
    ToolFailed."""
    with folder(workspace, Path(os.path.realpath(workspace)) / _UNFINISHED, create=True) as found:
        yield found


def sweep_unfinished(workspace: Path) -> None:
    """Remove temporary files that are an hour old or older."""
    with suppress(OSError, ToolFailed), open_unfinished(workspace) as descriptor:
        for name in os.listdir(descriptor):
            if os.stat(name, dir_fd=descriptor).st_mtime < ambient.now() - MAX_UNFINISHED:
                os.unlink(name, dir_fd=descriptor)


def list_names(workspace: Path, real: Path) -> list[str]:
    """Return the names in the resolved folder `real`, [] if there is none."""
    try:
        with folder(workspace, real) as descriptor:
            return os.listdir(descriptor)
    except (ToolFailed, OSError):
        return []


class FolderEntry(Struct, frozen=True, kw_only=True):
    """An entry below a folder: its `path` from there, and its kind."""

    path: str
    info: os.stat_result


def walk(
    workspace: Path, start: Path, depth: int, avoid: frozenset[str] = frozenset()
) -> Iterator[FolderEntry]:
    """Yield what is below the resolved folder `start`, by name, folder by folder, following no link
    and entering no folder named in `avoid`. Ends silently when the budget of entries or seconds is
    used up."""
    waiting = deque([("", 0)])
    left, until = MAX_ENTRIES, ambient.monotonic() + MAX_SECONDS
    top = Path(os.path.realpath(workspace)) == start
    while waiting:
        prefix, level = waiting.popleft()
        try:
            with folder(workspace, start / prefix) as descriptor:
                found = _scan_folder(descriptor, left, OWN if top and not prefix else "")
        except (ToolFailed, OSError):
            continue
        left -= len(found)
        for name, info in found:
            yield FolderEntry(path=prefix + name, info=info)
            if stat.S_ISDIR(info.st_mode) and level < depth and name not in avoid:
                waiting.append((f"{prefix}{name}/", level + 1))
        if left <= 0 or ambient.monotonic() > until:
            return


def digest(workspace: Path, path: str, most: int) -> str:
    """SHA-256 of the file at `path`, secrets too: only the digest is kept. Of one with more than
    `most` bytes size and time of change; "" if there is no file."""
    root = Path(os.path.realpath(workspace))
    try:
        where = f"{root}/{path}"
        if not stat.S_ISREG(os.stat(where).st_mode):  # nothing exists there, as for most words
            return ""
        real = Path(os.path.realpath(where))
    except (OSError, ValueError):
        return ""
    if not real.is_relative_to(root):
        return f"leads to {display_path(real)}"
    try:
        with folder(workspace, real.parent) as parent:
            descriptor = os.open(real.name, _READ, dir_fd=parent)
    except (OSError, ToolFailed):
        return ""
    info = os.fstat(descriptor)
    if not stat.S_ISREG(info.st_mode):
        os.close(descriptor)
        return ""
    with os.fdopen(descriptor, "rb") as file:
        if info.st_size > most:
            return f"{info.st_size} bytes, {info.st_mtime_ns}"
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_beginning(workspace: Path, path: str, most: int) -> bytes:
    """The first bytes of the file at `path`, `most` of them, for the gateway's own eyes: secrets
    too. b"" if there is no file; no link is followed."""
    real = Path(os.path.realpath(workspace)) / path
    try:
        with folder(workspace, real.parent) as parent:
            descriptor = os.open(real.name, _READ, dir_fd=parent)
    except (OSError, ToolFailed):
        return b""
    with os.fdopen(descriptor, "rb") as file:
        return file.read(most) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""


def temporary_name() -> str:
    """Return a name for a temporary file; no list shows it."""
    return f".{ambient.new_id()}.tmp"


def _scan_folder(descriptor: int, most: int, without: str) -> list[tuple[str, os.stat_result]]:
    names: list[str] = []
    with os.scandir(descriptor) as entries:
        for entry in entries:
            if len(names) >= most:
                break
            if entry.name != without and not _TEMPORARY.fullmatch(entry.name):
                names.append(entry.name)
    found = []
    for name in sorted(names):
        with suppress(FileNotFoundError):  # a command of the workspace was faster
            found.append((name, os.stat(name, dir_fd=descriptor, follow_symlinks=False)))
    return found


@contextmanager
def folder(workspace: Path, real: Path, create: bool = False) -> Iterator[int]:
    """Open the resolved folder `real` by a descriptor, following no link. Created folders belong to
    the workspace's owner, so that an unprivileged sandbox can use them; except in OWN, which stays
    the gateway's."""
    root = Path(os.path.realpath(workspace))
    relative = real.relative_to(root)
    try:
        descriptor = _descend(root, relative.parts, create)
    except OSError as error:
        raise as_tool_failure(str(relative), error) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def put_output(workspace: Path, name: str, data: bytes) -> str:
    """Write `data` as the file `name` of the workspace's outputs, which stay the gateway's; its
    path. Blocks. No link is followed: on the way it is a ToolFailed, and so is all else that makes
    the write impossible; one in the file's own place makes way."""
    path = f"{OWN}/outputs/{name}"
    take_room(workspace, len(data))
    real = Path(os.path.realpath(workspace)) / path
    with folder(workspace, real.parent, create=True) as parent:
        try:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=parent)
            with os.fdopen(os.open(name, _NEW, 0o600, dir_fd=parent), "wb") as file:
                file.write(data)
        except OSError as error:
            raise as_tool_failure(path, error) from None
    return path


def add(workspace: Path, place: str, suggested: str, source: BinaryIO) -> str:
    """Copy `source` to a new file of the folder `place`, under a clean form of the `suggested` name
    or a similar one; return its path. Blocks. Overwrites nothing and follows no link out of the
    workspace; ToolFailed if that is impossible."""
    stem, suffix = os.path.splitext(file_name(suggested))
    make(workspace)
    real = resolve(workspace, place, write=True)
    take_room(workspace, room.measure_rest(source))
    root = Path(os.path.realpath(workspace))
    with folder(workspace, real, create=True) as parent:
        for n in range(1, MAX_SAME_NAME):
            name = f"{stem}{suffix}" if n == 1 else f"{stem}-{n}{suffix}"
            try:
                descriptor = os.open(name, _NEW, 0o600, dir_fd=parent)
            except FileExistsError:
                continue
            except OSError as error:
                raise as_tool_failure(f"{place}/{name}", error) from None
            _fill(descriptor, source, root, parent, name)
            return display_path((real / name).relative_to(root))
    raise ToolFailed(f"There are too many files of the name {stem}{suffix} in {place}.")


def _fill(descriptor: int, source: BinaryIO, root: Path, parent: int, name: str) -> None:
    try:
        with os.fdopen(descriptor, "wb") as file:
            give(file.fileno(), os.stat(root), name)
            while piece := source.read(_PIECE):
                file.write(piece)
    except OSError as error:
        with suppress(OSError):
            os.unlink(name, dir_fd=parent)
        raise as_tool_failure(name, error) from None


def _descend(root: Path, parts: tuple[str, ...], create: bool) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    current = os.open(root, flags)
    try:
        owner = os.fstat(current)
        for part in parts:
            made = create and _make_folder(part, current)
            parent, current = current, os.open(part, flags, dir_fd=current)
            os.close(parent)
            if made:
                give(current, owner, parts[0])
    except OSError:
        os.close(current)
        raise
    return current


def _make_folder(name: str, parent: int) -> bool:
    """Create the folder. Return False if it exists, perhaps only since now, as calls run
    concurrently."""
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
    if real == Path(os.path.realpath(workspace)):
        raise ToolFailed(f"{path} is a folder.")
    with folder(workspace, real.parent) as parent:
        try:
            descriptor = os.open(real.name, _READ, dir_fd=parent)
        except OSError as error:
            raise as_tool_failure(path, error) from None
    try:
        info = os.fstat(descriptor)
        check(info, path)
        if stat.S_ISDIR(info.st_mode):
            raise ToolFailed(f"{path} is a folder.")
    except ToolFailed:
        os.close(descriptor)
        raise
    return open(descriptor, "rb")


def open_plain(workspace: Path, real: Path) -> BufferedReader:
    """Open the file at the resolved path, whatever its name; no link, pipe or device. OSError,
    ToolFailed."""
    with folder(workspace, real.parent) as parent:
        descriptor = os.open(real.name, _READ, dir_fd=parent)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ToolFailed(f"{real.name} is no file.")
    return open(descriptor, "rb")


def as_tool_failure(path: str, error: OSError) -> ToolFailed:
    """Translate an error of the operating system about `path` for the model."""
    match error.errno:
        case errno.ENOENT:
            return ToolFailed(f"There is no {path}.")
        case errno.ELOOP | errno.ENOTDIR:
            return ToolFailed(f"{path} goes through a link or a file, not a folder.")
        case errno.EISDIR:
            return ToolFailed(f"{path} is a folder.")
        case _:
            return ToolFailed(f"{path} cannot be used: {os.strerror(error.errno or 0)}.")
