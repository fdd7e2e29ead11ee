"""What a workspace was before a turn changed it, and after: so that all of it can be taken back,
whatever changed it.

A snapshot is a list of what stood there, in `.turnkeeper/snapshots/<name>`; contents lie once each
beside the lists, under their digest, and are copied only where a file is not as the newest list
has it. Blocks: call it in a thread. Two of one name are the first: a turn that begins again after
a crash does not lose what it began with.

Where there is a bucket, contents go there instead, and a copy of each list after them: what a list
names is there. A workspace that has lost its lists has them back from there.
"""

import hashlib
import logging
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.tools import paths

log = logging.getLogger("turnkeeper.snapshots")

CACHES = frozenset(
    {
        *("node_modules", ".venv", "venv", ".cache", "__pycache__", ".tox", ".mypy_cache"),
        *(".pytest_cache", ".ruff_cache", ".next", "target", ".gradle", ".npm"),
    }
)
"""Folders that programs make anew; they are left out, the largest first, where all is too much."""
MAX_OPEN_DAYS = 30
"""Days that the list of a turn that did not end is kept: it may wait for a person."""
_LISTS = f"{paths.OWN}/snapshots"
_CONTENTS = f"{_LISTS}/contents"
_FOLDERS = ("contents", "unfinished")
"""What stands beside the lists."""


class SnapshotRefused(Exception):
    """The workspace is too large, or cannot be read; the text says which."""


class FileState(Struct, frozen=True, array_like=True):
    """What stood at a path: a file with its `digest`, a folder, or a link (`digest` is where it
    leads, as hexadecimal bytes). The rest tells whether it is still that."""

    kind: str
    mode: int
    size: int
    changed: int
    inode: int
    digest: str = ""

    def is_same(self, other: "FileState | None") -> bool:
        """The other has the same content, and may be run by the same."""
        if other is None or (self.kind, self.digest) != (other.kind, other.digest):
            return False
        return self.kind != "file" or self.mode == other.mode


class Snapshot(Struct, frozen=True, kw_only=True):
    """All that stood in a workspace, by path. `left_out`: folders that were too large."""

    name: str
    at: float
    files: dict[str, FileState]
    left_out: tuple[str, ...] = ()

    def encode(self) -> bytes:
        """As it is stored. Names of files need not be text."""
        files = {os.fsencode(path): state for path, state in self.files.items()}
        left_out = tuple(map(os.fsencode, self.left_out))
        stored = _Stored(name=self.name, at=self.at, files=files, left_out=left_out)
        return msgspec.msgpack.encode(stored)

    @classmethod
    def decode(cls, data: bytes) -> "Snapshot | None":
        """What was stored, None if that cannot be read."""
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
    """What became of files: `restored`, changed by something else since, or `already` as they were,
    such as by a restore that was cut off."""

    restored: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    already: tuple[str, ...] = ()


class Bucket(Protocol):
    """Where contents and copies of lists lie outside of this machine. All of it: OSError."""

    def put(self, name: str, data: bytes) -> None:
        """Store `data` under this name."""

    def get(self, name: str) -> bytes | None:
        """What is stored there, None if nothing is."""

    def list_names(self, folder: str) -> list[str]:
        """The whole names below a folder."""

    def remove(self, names: Sequence[str]) -> None:
        """Remove these."""


class Snapshots:
    """Takes snapshots of workspaces. `keep`: seconds; `most`: bytes of one; `bucket`: None for the
    workspace's own folder."""

    def __init__(
        self, keep: float = 86_400.0, most: int = 100_000_000, bucket: Bucket | None = None
    ) -> None:
        self._keep, self._most, self._bucket = keep, most, bucket
        self._recalled: set[str] = set()

    def take(self, workspace: Path, name: str) -> Snapshot:
        """The snapshot `name`, made if there is none. SnapshotRefused."""
        if (known := self.find(workspace, name)) is not None:
            return known
        try:
            paths.make(workspace)
            self._prune(workspace)
            found, left_out = self._choose(workspace)
            lists = list(self._lists(workspace))
            newest = max(lists, key=lambda one: one.at, default=None)
            kept = {state.digest for one in lists for state in one.files.values()}
            states = {
                path: self._keep_content(workspace, path, state, newest, kept)
                for path, state in found.items()
            }
            made = Snapshot(name=name, at=ambient.now(), files=states, left_out=left_out)
            if self._bucket is not None:
                self._bucket.put(f"{workspace.name}/lists/{name}", made.encode())
            _store(workspace, f"{_LISTS}/{name}", made.encode())
        except (OSError, ToolFailed) as error:
            raise SnapshotRefused(f"The workspace cannot be copied: {error}") from None
        return made

    def find(self, workspace: Path, name: str) -> Snapshot | None:
        """The snapshot of this name, None if there is none."""
        if not paths.is_made(workspace):
            return None
        self._recall(workspace)
        data = _load(workspace, f"{_LISTS}/{name}")
        return Snapshot.decode(data) if data is not None else None

    def find_changed(self, workspace: Path, before: Snapshot, after: Snapshot) -> TakenBack:
        """What `take_back` would do."""
        return self._compare(workspace, before, after)[0]

    def list_changed(self, workspace: Path, before: str, after: str) -> tuple[str, ...]:
        """What differs between two snapshots of these names, as people know it: files, and in
        place of what is in them folders that are new, hidden, or made by programs."""
        old, new = self.find(workspace, before), self.find(workspace, after)
        if old is None or new is None:
            return ()
        changed = (
            _name_place(path, old)
            for path in sorted(old.files.keys() | new.files.keys())
            if not _are_same(old.files.get(path), new.files.get(path))
            and not _is_folder(path, old, new.files)
        )
        return tuple(dict.fromkeys(map(paths.display_path, changed)))

    def take_back(
        self, workspace: Path, before: Snapshot, after: Snapshot, *, changed_too: bool = False
    ) -> TakenBack:
        """Make what differs between the two what it was before, unless it was changed since; with
        `changed_too` also that. A second time there is nothing to do."""
        outcome, now = self._compare(workspace, before, after)
        wanted = {*outcome.restored, *(outcome.changed if changed_too else ())}
        done: list[str] = []
        for path in sorted(wanted, reverse=True):  # what is in a folder goes before it
            new = path in now and path not in before.files
            if new and _remove(workspace, path, now[path]):
                done.append(path)
        done += (
            path
            for path in sorted(wanted & before.files.keys())  # a folder before what is in it
            if self._restore(workspace, path, before.files[path], now.get(path))
        )
        shown = (path for path in done if not _is_folder(path, before, now))
        failed = [path for path in wanted.difference(done) if not _is_folder(path, before, now)]
        left = set() if changed_too else {*outcome.changed}
        return TakenBack(
            restored=tuple(sorted(shown)),
            changed=tuple(sorted({*left, *failed})),
            already=tuple(
                path for path in outcome.already if not _is_folder(path, before, after.files)
            ),
        )

    # ---- one list ----------------------------------------------------------------------------

    def _choose(self, workspace: Path) -> tuple[dict[str, FileState], tuple[str, ...]]:
        """What is to be kept, without contents; the largest caches are left out if it is too
        much."""
        found = dict(_scan(workspace))
        total = sum(state.size for state in found.values())
        left_out: list[str] = []
        caches: dict[str, int] = {}
        for path, state in found.items():
            parts = path.split("/")
            for n, part in enumerate(parts[:-1]):
                if part in CACHES:
                    top = "/".join(parts[: n + 1])
                    caches[top] = caches.get(top, 0) + state.size
                    break
        for top in sorted(caches, key=lambda one: caches[one], reverse=True):
            if total <= self._most:
                break
            left_out.append(top)
            total -= caches[top]
            found = {path: one for path, one in found.items() if not _is_below(path, top)}
        if total > self._most:
            size, most = f"{total / 1e6:.0f} MB", f"{self._most / 1e6:.0f} MB"
            raise SnapshotRefused(f"The workspace has {size}, more than {most}.")
        return found, tuple(left_out)

    def _keep_content(
        self,
        workspace: Path,
        path: str,
        state: FileState,
        newest: Snapshot | None,
        kept: set[str],
    ) -> FileState:
        """The state with its digest, its content kept. `kept`: digests of contents that are."""
        if state.kind != "file":
            return state
        known = newest.files.get(path) if newest is not None else None
        if known is not None and _is_untouched(known, state):
            return msgspec.structs.replace(state, digest=known.digest)
        data = _read(workspace, path)
        digest = hashlib.sha256(data).hexdigest()
        place = f"{_CONTENTS}/{digest}"
        root = Path(os.path.realpath(workspace))
        if self._bucket is not None:
            if digest not in kept:
                self._bucket.put(f"{workspace.name}/contents/{digest}", data)
                kept.add(digest)
        elif paths.status(workspace, root / place) is None:
            _store(workspace, place, data)
        return msgspec.structs.replace(state, digest=digest)

    def _compare(
        self, workspace: Path, before: Snapshot, after: Snapshot
    ) -> tuple[TakenBack, dict[str, FileState]]:
        now: dict[str, FileState] = {}
        for path, state in _scan(workspace):
            known = after.files.get(path)
            if state.kind == "file" and known is not None and _is_untouched(known, state):
                state = msgspec.structs.replace(state, digest=known.digest)
            elif state.kind == "file":
                with suppress(OSError, ToolFailed):
                    digest = hashlib.sha256(_read(workspace, path)).hexdigest()
                    state = msgspec.structs.replace(state, digest=digest)
            now[path] = state
        restored: list[str] = []
        changed: list[str] = []
        already: list[str] = []
        left_out = {*before.left_out, *after.left_out}
        for path in sorted(before.files.keys() | after.files.keys()):
            old, new, current = before.files.get(path), after.files.get(path), now.get(path)
            if _are_same(old, new):
                continue
            if _are_same(old, current):
                already.append(path)
                continue
            if any(_is_below(path, top) for top in left_out):
                continue
            as_left = _are_same(new, current) or _is_between(old, new, current)
            (restored if as_left else changed).append(path)
        found = {"restored": restored, "changed": changed, "already": already}
        return TakenBack(**{name: tuple(some) for name, some in found.items()}), now

    def _restore(self, workspace: Path, path: str, old: FileState, now: FileState | None) -> bool:
        """Put back what stood at `path`. False if that cannot be."""
        try:
            if now is not None and now.kind != old.kind and not _remove(workspace, path, now):
                return False
            if old.kind == "folder":
                with paths.folder(workspace, _place(workspace, path), create=True):
                    return True
            if old.kind == "link":
                paths.put_link(
                    workspace, _place(workspace, path), os.fsdecode(bytes.fromhex(old.digest))
                )
                return True
            data = _load(workspace, f"{_CONTENTS}/{old.digest}")
            if data is None and self._bucket is not None:
                data = self._bucket.get(f"{workspace.name}/contents/{old.digest}")
            if data is None or hashlib.sha256(data).hexdigest() != old.digest:
                return False
            _store(workspace, path, data, old.mode)
        except (OSError, ToolFailed):
            return False
        return True

    # ---- all lists ---------------------------------------------------------------------------

    def _lists(self, workspace: Path) -> Iterator[Snapshot]:
        root = Path(os.path.realpath(workspace))
        self._recall(workspace)
        with suppress(OSError, ToolFailed):
            for name in paths.list_names(workspace, root / _LISTS):
                if name not in _FOLDERS and (found := self.find(workspace, name)) is not None:
                    yield found

    def _recall(self, workspace: Path) -> None:
        """Bring back lists that the workspace has lost, once; without the bucket there are none."""
        if self._bucket is None or workspace.name in self._recalled:
            return
        root, folder = Path(os.path.realpath(workspace)), f"{workspace.name}/lists"
        try:
            if not set(paths.list_names(workspace, root / _LISTS)).difference(_FOLDERS):
                for place in self._bucket.list_names(folder):
                    if (data := self._bucket.get(place)) is not None:
                        _store(workspace, f"{_LISTS}/{place.rpartition('/')[2]}", data)
        except (OSError, ToolFailed) as error:
            log.warning("snapshots_not_recalled", extra={"why": str(error)})
            return
        self._recalled.add(workspace.name)

    def _prune(self, workspace: Path) -> None:
        """Forget old lists, contents that stand in none, and what was never written whole."""
        paths.sweep_unfinished(workspace)
        root, now = Path(os.path.realpath(workspace)), ambient.now()
        known = {one.name: one for one in self._lists(workspace)}
        old: list[str] = []
        for name, one in list(known.items()):
            open_still = name.endswith(".before") and f"{name[:-7]}.after" not in known
            life = MAX_OPEN_DAYS * 86_400.0 if open_still else self._keep
            if one.at < now - life:
                with suppress(OSError, ToolFailed):
                    paths.remove(workspace, root / _LISTS / name)
                del known[name]
                old.append(name)
        used = {state.digest for one in known.values() for state in one.files.values()}
        with suppress(OSError, ToolFailed):
            for digest in set(paths.list_names(workspace, root / _CONTENTS)) - used:
                paths.remove(workspace, root / _CONTENTS / digest)
        if old and self._bucket is not None:
            self._prune_bucket(self._bucket, workspace.name, old, used)

    def _prune_bucket(self, bucket: Bucket, place: str, old: list[str], used: set[str]) -> None:
        """The same there: first the lists, so that none names what is gone."""
        try:
            bucket.remove([f"{place}/lists/{name}" for name in old])
            stored = bucket.list_names(f"{place}/contents")
            bucket.remove([one for one in stored if one.rpartition("/")[2] not in used])
        except OSError as error:
            log.warning("snapshots_not_pruned", extra={"why": str(error)})


def name_before(turn: str) -> str:
    """The snapshot of what a turn found."""
    return f"{turn}.before"


def name_after(turn: str) -> str:
    """The snapshot of what a turn left."""
    return f"{turn}.after"


def _scan(workspace: Path) -> Iterator[tuple[str, FileState]]:
    """What stands below the workspace but for the gateway's own; SnapshotRefused if that is more
    than can be looked at."""
    count, began = 0, ambient.monotonic()
    root = Path(os.path.realpath(workspace))
    for entry in paths.walk(workspace, root, depth=100):
        count += 1
        info = entry.info
        kind = next((name for name, fits in _KINDS if fits(info.st_mode)), "")
        if not kind:
            continue
        size = info.st_size if kind == "file" else 0
        target = ""
        if kind == "link":
            target = os.fsencode(paths.read_link(workspace, root / entry.path)).hex()
        mode = stat.S_IMODE(info.st_mode)
        yield entry.path, FileState(kind, mode, size, info.st_ctime_ns, info.st_ino, target)
    if count >= paths.MAX_ENTRIES or ambient.monotonic() - began > paths.MAX_SECONDS:
        raise SnapshotRefused(f"The workspace has more than {count:,} files.")


_KINDS = (("file", stat.S_ISREG), ("folder", stat.S_ISDIR), ("link", stat.S_ISLNK))


def _is_untouched(known: FileState, now: FileState) -> bool:
    """The same file, not written since; the time of change cannot be set by who writes it."""
    return (known.kind, known.size, known.changed, known.inode) == (
        now.kind, now.size, now.changed, now.inode,
    ) and bool(known.digest)  # fmt: skip


def _are_same(one: FileState | None, other: FileState | None) -> bool:
    return one is other or (one is not None and one.is_same(other))


def _is_between(old: FileState | None, new: FileState | None, now: FileState | None) -> bool:
    """What is of another kind makes room first, and `take_back` may have been cut off then."""
    return now is None and old is not None and new is not None and old.kind != new.kind


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")


def _is_folder(path: str, before: Snapshot, now: dict[str, FileState]) -> bool:
    stood = before.files.get(path) or now.get(path)
    return stood is not None and stood.kind == "folder"


def _name_place(path: str, before: Snapshot) -> str:
    parts = path.split("/")
    for n, part in enumerate(parts[:-1], 1):
        folder = "/".join(parts[:n])
        if part.startswith(".") or part in CACHES or folder not in before.files:
            return f"{folder}/"
    return path


def _place(workspace: Path, path: str) -> Path:
    return Path(os.path.realpath(workspace)) / path


def _read(workspace: Path, path: str) -> bytes:
    with paths.open_plain(workspace, _place(workspace, path)) as file:
        return file.read()


def _load(workspace: Path, path: str) -> bytes | None:
    try:
        return _read(workspace, path)
    except (OSError, ToolFailed):
        return None


def _store(workspace: Path, path: str, data: bytes, mode: int = 0o600) -> None:
    paths.put_file(workspace, _place(workspace, path), data, mode)


def _remove(workspace: Path, path: str, now: FileState) -> bool:
    try:
        if now.kind == "folder":
            paths.remove_folder(workspace, _place(workspace, path))
        else:
            paths.remove(workspace, _place(workspace, path))
    except (OSError, ToolFailed):
        return False
    return True


def join_names(names: Iterable[str], most: int = 20) -> str:
    """Names for a sentence, the last of many as a count."""
    known = list(names)
    more = f" (+{len(known) - most})" if len(known) > most else ""
    return ", ".join(known[:most]) + more
