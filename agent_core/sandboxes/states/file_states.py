"""Stored states of a workspace's paths, and their comparison."""

import os

import msgspec
from msgspec import Struct

CACHES = frozenset(
    {
        *("node_modules", ".venv", "venv", ".cache", "__pycache__", ".tox", ".mypy_cache"),
        *(".pytest_cache", ".ruff_cache", ".next", "target", ".gradle", ".npm"),
    }
)
"""Folders that programs make anew; they are left out, the largest first, where all is too much."""


class FileState(Struct, frozen=True, array_like=True):
    """The state of a path: a file with its `digest`, a folder, or a link (`digest` is its target,
    as hexadecimal bytes). The other fields tell whether it has changed."""

    kind: str
    mode: int
    size: int
    changed: int
    inode: int
    digest: str = ""

    def is_same(self, other: "FileState | None") -> bool:
        """The other has the same content, and the same may use it."""
        if other is None or (self.kind, self.digest) != (other.kind, other.digest):
            return False
        return self.kind == "link" or self.mode == other.mode


class Snapshot(Struct, frozen=True, kw_only=True):
    """All states of a workspace, by path. `left_out`: folders that were too large."""

    name: str
    at: float
    files: dict[str, FileState]
    left_out: tuple[str, ...] = ()

    def encode(self) -> bytes:
        """Encode it for storage. Names of files need not be text."""
        files = {os.fsencode(path): state for path, state in self.files.items()}
        left_out = tuple(map(os.fsencode, self.left_out))
        stored = _Stored(name=self.name, at=self.at, files=files, left_out=left_out)
        return msgspec.msgpack.encode(stored)

    @classmethod
    def decode(cls, data: bytes) -> "Snapshot | None":
        """Decode a stored snapshot, None if it is invalid."""
        try:
            stored = msgspec.msgpack.decode(data, type=_Stored)
        except msgspec.DecodeError:
            return None
        files = {os.fsdecode(path): state for path, state in stored.files.items()}
        left_out = tuple(map(os.fsdecode, stored.left_out))
        return cls(name=stored.name, at=stored.at, files=files, left_out=left_out)


class _Stored(Struct, frozen=True, kw_only=True):
    name: str
    at: float
    files: dict[bytes, FileState]
    left_out: tuple[bytes, ...]


class TakenBack(Struct, frozen=True, kw_only=True):
    """The result for files: `restored`, changed by something else since, or `already` as before,
    such as after an interrupted restore."""

    restored: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    already: tuple[str, ...] = ()


def is_untouched(known: FileState, now: FileState) -> bool:
    """The same file, not written since; the time of change cannot be set by who writes it."""
    return (known.kind, known.size, known.changed, known.inode) == (
        now.kind, now.size, now.changed, now.inode,
    ) and bool(known.digest)  # fmt: skip


def are_same(one: FileState | None, other: FileState | None) -> bool:
    """Return True if both are missing, or the same."""
    return one is other or (one is not None and one.is_same(other))


def is_between(old: FileState | None, new: FileState | None, now: FileState | None) -> bool:
    """Return True for the state in the middle of an interrupted `take_back`, which removes a path
    of another kind first."""
    return now is None and old is not None and new is not None and old.kind != new.kind


def is_below(path: str, top: str) -> bool:
    """`path` is `top`, or in it."""
    return path == top or path.startswith(f"{top}/")


def is_folder(path: str, before: Snapshot, now: dict[str, FileState]) -> bool:
    """Return True if `path` was a folder, or is one now if it did not exist."""
    stood = before.files.get(path) or now.get(path)
    return stood is not None and stood.kind == "folder"


def name_place(path: str, before: Snapshot) -> str:
    """Return the path for people: the folder, where that is new, hidden, or made by programs."""
    parts = path.split("/")
    for n, part in enumerate(parts[:-1], 1):
        folder = "/".join(parts[:n])
        if part.startswith(".") or part in CACHES or folder not in before.files:
            return f"{folder}/"
    return path


class RevivedFiles(Struct, frozen=True, kw_only=True):
    """Files restored from a snapshot, as they were `at` that time: those of the workspace, or only
    HOME and /tmp. `left_out`: too large for it; `missing`: not restored."""

    at: float
    snapshot: str
    workspace: bool
    left_out: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
