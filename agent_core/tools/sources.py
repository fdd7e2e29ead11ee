"""Digests of the files that a command may run: of its workspace, where its words do not tell which,
and of its sandbox's HOME and /tmp, which programs obey without a word.

Every file counts, whatever its name, except pictures, sound and documents, and the caches of test
runners and checkers: a command that names one of these is bound to it by its words. A file that is
only named like a picture counts, and all of them do where the words may stand for any file.
"""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from agent_core import ambient
from agent_core.tools import paths

MAX_FILES, MAX_BYTES = 2_000, 64_000_000
"""Limits within which contents are read; of more files only their metadata."""
MAX_NAMED = 3
"""Files that are named one by one."""
MAX_DEPTH = 40
_CACHES = frozenset((".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"))
HOME, TMP = f"{paths.OWN}/sandbox/home", f"{paths.OWN}/sandbox/tmp"
"""HOME and /tmp of a workspace's sandbox, relative to its folder."""
PROGRAMS = f"{HOME}/.local/bin"
_KEPT_BY_PROGRAMS = _CACHES | {".cache", "_cacache", "_logs", "registry", "__pycache__"}
_SCRIPTS = frozenset(
    (".sh", ".bash", ".py", ".pyz", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua")
    + (".mk", ".awk", ".sed", ".sql", ".r", ".so", ".jar", ".env", ".cfg", ".conf", ".ini", ".toml")
)
_GIT = ("config", "HEAD", "info/attributes")
_ARCHIVE = (b"PK\x03\x04", b"PK\x05\x06")
_INERT: dict[str, tuple[bytes, ...]] = {
    ".png": (b"\x89PNG\r\n\x1a\n",),
    **dict.fromkeys((".jpg", ".jpeg"), (b"\xff\xd8\xff",)),
    ".gif": (b"GIF87a", b"GIF89a"),
    **dict.fromkeys((".webp", ".wav"), (b"RIFF",)),
    ".mp3": (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2", b"\xff\xfa"),
    ".mp4": (b"\x00\x00\x00",),
    ".ogg": (b"OggS",),
    ".webm": (b"\x1aE\xdf\xa3",),
    ".pdf": (b"%PDF-",),
    **dict.fromkeys((".docx", ".xlsx", ".pptx"), _ARCHIVE),
}
"""Endings of files that are not run, and how such a file begins."""


class SourceDigest(Struct, frozen=True, kw_only=True):
    """The state of a workspace's files. `files`: their names, if they are few. `whole`: their
    contents were read; a digest of metadata is bound to once, and never for longer."""

    digest: str
    files: tuple[str, ...] = ()
    whole: bool = True


def read_sources(workspace: Path, *, everything: bool = False) -> SourceDigest:
    """Digest the workspace files that a command may run, as of now. `everything`: also pictures,
    sound and documents, by their metadata. Blocks."""
    began = ambient.monotonic()
    listed = list(_list_files(workspace))
    inert = {name: info for name, info in listed if _is_inert(workspace, name, info)}
    found = {name: info for name, info in listed if name not in inert}
    late = ambient.monotonic() - began >= paths.MAX_SECONDS  # the walk has ended silently
    size = sum(info.st_size for info in found.values())
    whole = not late and len(found) <= MAX_FILES and size <= MAX_BYTES
    total = _digest_all(workspace, found, whole=whole)
    for name, info in sorted(inert.items()) if everything else ():
        line = f"{len(name)} {name} {_describe_file(info)}\n"
        total.update(line.encode("utf-8", "surrogateescape"))
    names = tuple(map(paths.display_path, sorted(found))) if len(found) <= MAX_NAMED else ()
    return SourceDigest(digest=total.hexdigest(), files=names if whole else (), whole=whole)


def read_surroundings(workspace: Path, *, everything: bool) -> str:
    """Digest the files of its sandbox's HOME and /tmp that a command may run or obey without naming
    them: programs of its PATH; with `everything` all of HOME but caches, and scripts in /tmp. ""
    for none. Blocks."""
    root = Path(os.path.realpath(workspace))
    found = {
        f"{name}/{entry.path}": entry.info
        for name in ((HOME, TMP) if everything else (PROGRAMS,))
        for entry in paths.walk(workspace, root / name, MAX_DEPTH, _KEPT_BY_PROGRAMS)
        if _can_be_run(entry.info) and (name != TMP or _is_script(entry))
    }
    size = sum(info.st_size for info in found.values())
    whole = len(found) <= MAX_FILES and size <= MAX_BYTES
    return _digest_all(workspace, found, whole=whole).hexdigest() if found else ""


def _digest_all(
    workspace: Path, found: Mapping[str, os.stat_result], *, whole: bool
) -> "hashlib._Hash":
    """`whole`: by their contents, otherwise by their metadata."""
    total = hashlib.sha256()
    for name, info in sorted(found.items()):
        mark = _digest_file(workspace, name, info) if whole else _describe_file(info)
        total.update(f"{len(name)} {name} {mark}\n".encode("utf-8", "surrogateescape"))
    return total


def _can_be_run(info: os.stat_result) -> bool:
    return stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode)


def _is_script(entry: paths.FolderEntry) -> bool:
    ending = os.path.splitext(entry.path)[1].lower()
    return bool(entry.info.st_mode & 0o111) or ending in _SCRIPTS


def _list_files(workspace: Path) -> Iterator[tuple[str, os.stat_result]]:
    root = Path(os.path.realpath(workspace))
    for entry in paths.walk(workspace, root, MAX_DEPTH, _CACHES | {".git"}):
        if not stat.S_ISDIR(entry.info.st_mode):
            yield entry.path, entry.info
    for entry in paths.walk(workspace, root / ".git", 1):
        hook = entry.path.startswith("hooks/") and not entry.path.endswith(".sample")
        if hook or entry.path in _GIT:
            yield f".git/{entry.path}", entry.info


def _is_inert(workspace: Path, name: str, info: os.stat_result) -> bool:
    """A picture, sound or document by its name and its first bytes, or an empty file."""
    begins = _INERT.get(os.path.splitext(name)[1].lower())
    if begins is None or not stat.S_ISREG(info.st_mode):
        return False
    return not info.st_size or paths.read_beginning(workspace, name, 8).startswith(begins)


def _digest_file(workspace: Path, name: str, info: os.stat_result) -> str:
    if not stat.S_ISREG(info.st_mode):
        return _describe_file(info)
    runs = "x" if info.st_mode & 0o111 else "-"
    return f"{runs} {paths.digest(workspace, name, MAX_BYTES)}"


def _describe_file(info: os.stat_result) -> str:
    """Describe a file by metadata, including some that no program can reset."""
    known = (info.st_mode, info.st_size, info.st_ino, info.st_mtime_ns, info.st_ctime_ns)
    return " ".join(map(str, known))
