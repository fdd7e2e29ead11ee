"""Snapshots of a workspace before and after a turn, so that any changes can be undone, whatever
made them.

A snapshot is a list of the files and their states, in `.turnkeeper/snapshots/<name>`; contents are
stored once each beside the lists, under their digest, and copied only where a file differs from the
newest list. Blocks: call it in a thread. Taking one twice under a name keeps the first: a turn that
begins again after a crash does not lose its start. One more is taken when the sandbox is idle: with
HOME and /tmp, replacing the one before.

With a bucket, contents go there instead, and a copy of each list after them: everything that a list
names is there. A workspace that has lost its lists gets them back from there, with the missing
files of the newest.
"""

import hashlib
import logging
import os
import threading
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Protocol

import msgspec

from agent_core import ambient
from agent_core.errors import ToolFailed, is_shortage
from agent_core.sandboxes.folders import AFTER, BEFORE
from agent_core.sandboxes.states.file_states import (
    FileState,
    RevivedFiles,
    Snapshot,
    TakenBack,
    are_same,
    is_below,
    is_between,
    is_folder,
    is_untouched,
    name_place,
)
from agent_core.sandboxes.states.scan import (
    STATE,
    SnapshotRefused,
    choose_all,
    choose_files,
    scan_files,
)
from agent_core.tools import paths

log = logging.getLogger("turnkeeper.snapshots")

MAX_OPEN_DAYS = 30
"""Days that the list of a turn that did not end is kept: it may wait for a person."""
MAX_MISSING = 20
_LISTS = f"{paths.OWN}/snapshots"
_CONTENTS = f"{_LISTS}/contents"
_BEGUN, _REVIVED = "reviving", "revived"
"""Notes of a restore that has begun, and of restored files that must be told."""
_BESIDE = frozenset({"contents", "unfinished", _BEGUN, _REVIVED})
"""Names beside the lists."""
_IDLE = ".idle"
_LOCKS = tuple(threading.RLock() for _ in range(64))
"""One for each workspace: snapshots of a turn and of an idle sandbox may coincide."""


MAX_EMPTY = 10_000
"""Workspaces without files that are known as such."""


class Bucket(Protocol):
    """Remote storage of contents and copies of lists. All methods: OSError."""

    def put(self, name: str, data: bytes) -> None:
        """Store `data` under this name."""

    def get(self, name: str) -> bytes | None:
        """Return what is stored there, None if nothing is."""

    def list_names(self, folder: str) -> list[str]:
        """The whole names below a folder."""

    def remove(self, names: Sequence[str]) -> None:
        """Remove these."""


class Snapshots:
    """Takes snapshots of workspaces. `keep`: seconds; `most`: bytes of one; `bucket`: None for the
    workspace's own folder; `is_erased`: True for a workspace whose copies in the bucket are to go,
    and must not come back."""

    quiet = 60.0
    """Seconds after the last command until a sandbox is idle, for which one is taken."""

    def __init__(
        self,
        keep: float = 86_400.0,
        most: int = 100_000_000,
        bucket: Bucket | None = None,
        is_erased: Callable[[Path], bool] = lambda _: False,
    ) -> None:
        self._is_erased = is_erased
        self._keep, self._most, self._bucket = keep, most, bucket
        self._news: dict[str, RevivedFiles] = {}
        self._told: set[str] = set()
        self._empty: dict[str, None] = {}
        """Names of workspaces that were never made, as far as the bucket knows too."""

    def may_have_lost(self, workspace: Path) -> bool:
        """False where there is surely nothing to `revive`: asked at each turn, this is one look at
        the disk, and most conversations never have a file."""
        if paths.is_made(workspace):
            return True
        return self._bucket is not None and workspace.name not in self._empty

    def take(self, workspace: Path, name: str) -> Snapshot:
        """Return the snapshot `name`, taken if there is none. SnapshotRefused."""
        with _lock(workspace):
            if (known := self.find(workspace, name)) is not None:
                return known
            try:
                self._empty.pop(workspace.name, None)
                self._recall(workspace)
                paths.make(workspace)
                paths.sweep_unfinished(workspace)
                made = self._make(workspace, name, choose_files(workspace, self._most))
                self._prune(workspace)  # the previous newest one is no longer needed
                return made
            except (OSError, ToolFailed) as error:
                raise SnapshotRefused(f"The workspace cannot be copied: {error}") from error

    def take_idle(self, workspace: Path) -> None:
        """Take a snapshot with HOME and /tmp, replacing the one before. A failure is logged; if the
        workspace is gone by then, nothing is left."""
        with _lock(workspace):
            if not paths.is_made(workspace):
                return
            stored: list[str] = []
            try:
                before = [one.name for one in self._lists(workspace) if one.name.endswith(_IDLE)]
                name = f"{ambient.new_id()}{_IDLE}"
                self._make(workspace, name, choose_all(workspace, self._most), stored)
                self._forget(workspace, before)
            except (OSError, ToolFailed, SnapshotRefused) as error:
                log.warning("idle_not_kept", extra={"why": str(error)})
            if self._bucket is not None and not paths.is_made(workspace):
                with suppress(OSError):  # if it was erased, everything else was removed before
                    self._bucket.remove(stored)

    def revive(self, workspace: Path) -> RevivedFiles | None:
        """Restore what the workspace has lost, with HOME and /tmp; return what was restored and not
        told yet, None for nothing. If nothing is lost it costs a look at the disk."""
        with _lock(workspace):
            self._recall(workspace)
            if not paths.is_made(workspace):
                if len(self._empty) >= MAX_EMPTY:
                    del self._empty[next(iter(self._empty))]
                self._empty[workspace.name] = None
                return None
            root = Path(os.path.realpath(workspace))
            if paths.status(workspace, root / STATE) is None:
                idle = (one for one in self._lists(workspace) if one.name.endswith(_IDLE))
                if (newest := max(idle, key=_read_time, default=None)) is not None:
                    self._put_back(workspace, newest, (newest,))
            if (data := _load(workspace, f"{_LISTS}/{_REVIVED}")) is not None:
                with suppress(msgspec.DecodeError):
                    revived = msgspec.msgpack.decode(data, type=RevivedFiles)
                    self._news[workspace.name] = revived
                    return revived
            return None

    def take_news(self, workspace: Path) -> RevivedFiles | None:
        """Return restored files that this run of the turn has not told; it tells them now."""
        if (revived := self._news.pop(workspace.name, None)) is not None:
            self._told.add(workspace.name)
        return revived

    def forget_news(self, workspace: Path) -> None:
        """Forget the news: the turn that told them has ended, so no later run has to tell them
        again."""
        if workspace.name in self._told:
            self._told.discard(workspace.name)
            with suppress(OSError, ToolFailed):
                paths.remove(workspace, Path(os.path.realpath(workspace)) / _LISTS / _REVIVED)

    def find(self, workspace: Path, name: str) -> Snapshot | None:
        """Return the snapshot of this name, None if there is none."""
        if not paths.is_made(workspace):
            return None
        self._recall(workspace)
        data = _load(workspace, f"{_LISTS}/{name}")
        return Snapshot.decode(data) if data is not None else None

    def find_changed(self, workspace: Path, before: Snapshot, after: Snapshot) -> TakenBack:
        """Return what `take_back` would do."""
        return self._compare(workspace, before, after)[0]

    def list_changed(self, workspace: Path, before: str, after: str) -> tuple[str, ...]:
        """Return the differences between two snapshots for people: files, and in place of files the
        folders that are new, hidden, or made by programs."""
        old, new = self.find(workspace, before), self.find(workspace, after)
        if old is None or new is None:
            return ()
        changed = (
            name_place(path, old)
            for path in sorted(old.files.keys() | new.files.keys())
            if not are_same(old.files.get(path), new.files.get(path))
            and not is_folder(path, old, new.files)
        )
        return tuple(dict.fromkeys(map(paths.display_path, changed)))

    def take_back(
        self, workspace: Path, before: Snapshot, after: Snapshot, *, changed_too: bool = False
    ) -> TakenBack:
        """Restore what differs between the two to the state before, unless it was changed since;
        with `changed_too` also that. Idempotent. OSError, ToolFailed for a shortage of the machine:
        the rest is to be restored later."""
        outcome, now = self._compare(workspace, before, after)
        wanted = {*outcome.restored, *(outcome.changed if changed_too else ())}
        done: list[str] = []
        for path in sorted(wanted, reverse=True):  # the content of a folder is removed before it
            new = path in now and path not in before.files
            if new and _remove(workspace, path, now[path]):
                done.append(path)
        done += (
            path
            for path in sorted(wanted & before.files.keys())  # a folder before its content
            if self._restore(workspace, path, before.files[path], now.get(path))
        )
        _close_folders(
            workspace, {path: before.files[path] for path in done if path in before.files}
        )
        shown = (path for path in done if not is_folder(path, before, now))
        stays = {path.rpartition("/")[0] for path in now.keys() - {*done}}
        failed = (  # a new folder with foreign content is kept silently
            path
            for path in wanted.difference(done)
            if path in before.files or not is_folder(path, before, now) or path not in stays
        )
        left = set() if changed_too else {*outcome.changed}
        return TakenBack(
            restored=tuple(sorted(shown)),
            changed=tuple(sorted({*left, *failed})),
            already=tuple(
                path for path in outcome.already if not is_folder(path, before, after.files)
            ),
        )

    # ---- one list ----------------------------------------------------------------------------

    def _make(
        self,
        workspace: Path,
        name: str,
        chosen: tuple[dict[str, FileState], tuple[str, ...]],
        stored: list[str] | None = None,
    ) -> Snapshot:
        """Store the chosen contents, then their list. `stored` gets the names of contents that the
        bucket has for it alone. OSError, ToolFailed."""
        found, left_out = chosen
        lists = sorted(self._lists(workspace), key=_read_time, reverse=True)
        idle = (one for one in lists if one.name.endswith(_IDLE))
        recent = ChainMap(*(one.files for one in (*lists[:1], *idle)))
        known = {state.digest for one in lists for state in one.files.values()}
        kept = set(known)
        states = {
            path: self._keep_content(workspace, path, state, recent, kept)
            for path, state in found.items()
        }
        made = Snapshot(name=name, at=ambient.now(), files=states, left_out=left_out)
        if self._bucket is not None:
            if stored is not None:
                stored += (f"{workspace.name}/contents/{one}" for one in kept - known)
                stored.append(f"{workspace.name}/lists/{name}")
            self._bucket.put(f"{workspace.name}/lists/{name}", made.encode())
        _store(workspace, f"{_LISTS}/{name}", made.encode())
        return made

    def _keep_content(
        self,
        workspace: Path,
        path: str,
        state: FileState,
        recent: Mapping[str, FileState],
        kept: set[str],
    ) -> FileState:
        """The state with its digest, its content kept. `kept`: digests of contents that are."""
        if state.kind != "file":
            return state
        known = recent.get(path)
        if known is not None and is_untouched(known, state):
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
        for path, state in scan_files(workspace):
            known = after.files.get(path)
            if state.kind == "file" and known is not None and is_untouched(known, state):
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
            if are_same(old, new):
                continue
            if are_same(old, current):
                already.append(path)
                continue
            if any(is_below(path, top) for top in left_out):
                continue
            as_left = are_same(new, current) or is_between(old, new, current)
            (restored if as_left else changed).append(path)
        found = {"restored": restored, "changed": changed, "already": already}
        return TakenBack(**{name: tuple(some) for name, some in found.items()}), now

    def _restore(self, workspace: Path, path: str, old: FileState, now: FileState | None) -> bool:
        """Restore the former state of `path`. Return False if that is impossible. OSError,
        ToolFailed for a shortage of the machine, which passes."""
        try:
            if now is not None and now.kind != old.kind and not _remove(workspace, path, now):
                return False
            if old.kind == "folder":
                with paths.folder(workspace, _place(workspace, path), create=True) as folder:
                    os.fchmod(folder, old.mode | 0o700)  # until it is complete
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
        except (OSError, ToolFailed) as error:
            if is_shortage(error):
                raise
            return False
        return True

    # ---- all lists ---------------------------------------------------------------------------

    def _lists(self, workspace: Path) -> Iterator[Snapshot]:
        root = Path(os.path.realpath(workspace))
        with suppress(OSError, ToolFailed):
            for name in paths.list_names(workspace, root / _LISTS):
                data = None if name in _BESIDE else _load(workspace, f"{_LISTS}/{name}")
                if data is not None and (found := Snapshot.decode(data)) is not None:
                    yield found

    def _recall(self, workspace: Path) -> None:
        """Restore lists that the workspace has lost, and files; without the bucket there are none.
        Lists come last, so that an interrupted restore begins again."""
        if self._bucket is None or self._is_erased(workspace):
            return
        root, folder = Path(os.path.realpath(workspace)), f"{workspace.name}/lists"
        beside = set(paths.list_names(workspace, root / _LISTS))
        if _BEGUN not in beside and beside - _BESIDE:
            return
        try:
            found = (self._bucket.get(place) for place in self._bucket.list_names(folder))
            lists = [one for data in found if data and (one := Snapshot.decode(data))]
            if not lists:
                return
            gone = _BEGUN in beside or not paths.is_made(workspace)
            paths.make(workspace)
            _store(workspace, f"{_LISTS}/{_BEGUN}", b"")
            self._put_back(workspace, max(lists, key=_read_time), lists, gone=gone)
            for one in lists:
                _store(workspace, f"{_LISTS}/{one.name}", one.encode())
            paths.remove(workspace, root / _LISTS / _BEGUN)
        except (OSError, ToolFailed) as error:
            log.warning("snapshots_not_recalled", extra={"why": str(error)})

    def _put_back(
        self, workspace: Path, newest: Snapshot, lists: Sequence[Snapshot], *, gone: bool = False
    ) -> None:
        """Restore what is missing of the newest one, and of HOME and /tmp from the idle one;
        existing files stay. What was restored is noted, to be told. `gone`: the workspace was
        missing, even if it had been empty."""
        idle = max((one for one in lists if one.name.endswith(_IDLE)), key=_read_time, default=None)
        state = idle.files.items() if idle is not None else ()
        wanted = {path: one for path, one in state if is_below(path, STATE)}
        wanted |= {path: one for path, one in newest.files.items() if not is_below(path, STATE)}
        root = Path(os.path.realpath(workspace))
        back: list[str] = []
        missing: list[str] = []
        for path in sorted(wanted):  # a folder before its content
            with suppress(OSError, ToolFailed):
                if paths.status(workspace, root / path) is not None:
                    continue
            try:
                restored = self._restore(workspace, path, wanted[path], None)
            except (OSError, ToolFailed):  # told as missing
                restored = False
            (back if restored else missing).append(path)
        _close_folders(workspace, {path: wanted[path] for path in back})
        if not (back or missing or gone):
            return
        files = gone or any(not is_below(path, STATE) for path in (*back, *missing))
        revived = RevivedFiles(
            at=newest.at,
            snapshot=newest.name,
            workspace=files,
            left_out=(*newest.left_out, *(() if idle is not None else (STATE,))),
            missing=tuple(map(paths.display_path, missing[:MAX_MISSING])),
        )
        _store(workspace, f"{_LISTS}/{_REVIVED}", msgspec.msgpack.encode(revived))
        log.info("files_revived", extra={"count": len(back), "missing": len(missing)})

    def _forget(self, workspace: Path, names: Sequence[str]) -> None:
        """Forget these lists; their contents go with the next turn's. OSError, ToolFailed."""
        if self._bucket is not None:
            self._bucket.remove([f"{workspace.name}/lists/{name}" for name in names])
        for name in names:
            paths.remove(workspace, Path(os.path.realpath(workspace)) / _LISTS / name)

    def _prune(self, workspace: Path) -> None:
        """Delete old lists, and contents that are in none."""
        root, now = Path(os.path.realpath(workspace)), ambient.now()
        known = {one.name: one for one in self._lists(workspace)}
        old: list[str] = []
        for name, one in known.items():
            open_still = name.endswith(BEFORE) and name.removesuffix(BEFORE) + AFTER not in known
            life = MAX_OPEN_DAYS * 86_400.0 if open_still else self._keep
            if one.at < now - life:
                old.append(name)
        left = (one for name, one in known.items() if name not in old)
        used = {state.digest for one in left for state in one.files.values()}
        if old and not self._prune_bucket(workspace.name, old, used):
            return
        for name in old:
            with suppress(OSError, ToolFailed):
                paths.remove(workspace, root / _LISTS / name)
        with suppress(OSError, ToolFailed):
            for digest in set(paths.list_names(workspace, root / _CONTENTS)) - used:
                paths.remove(workspace, root / _CONTENTS / digest)

    def _prune_bucket(self, place: str, old: list[str], used: set[str]) -> bool:
        """Prune the bucket first, as content that is only there would count as lost: lists before
        contents, so that none names what is gone. Return False if the bucket fails."""
        if self._bucket is None:
            return True
        try:
            self._bucket.remove([f"{place}/lists/{name}" for name in old])
            stored = self._bucket.list_names(f"{place}/contents")
            self._bucket.remove([one for one in stored if one.rpartition("/")[2] not in used])
        except OSError as error:
            log.warning("snapshots_not_pruned", extra={"why": str(error)})
            return False
        return True


def name_before(turn: str) -> str:
    """Return the name of the snapshot from before the turn."""
    return turn + BEFORE


def name_after(turn: str) -> str:
    """Return the name of the snapshot from after the turn."""
    return turn + AFTER


def _lock(workspace: Path) -> AbstractContextManager[bool]:
    return _LOCKS[hash(workspace.name) % len(_LOCKS)]


def _read_time(one: Snapshot) -> float:
    return one.at


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


def _close_folders(workspace: Path, states: Mapping[str, FileState]) -> None:
    """Give restored folders their former modes, inner ones first."""
    for path in sorted(states, reverse=True):
        if states[path].kind == "folder":
            with (
                suppress(OSError, ToolFailed),
                paths.folder(workspace, _place(workspace, path)) as one,
            ):
                os.fchmod(one, states[path].mode)


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
