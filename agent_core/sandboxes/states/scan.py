"""Chooses the files of a workspace for a snapshot, within limits."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from agent_core import ambient
from agent_core.sandboxes import folders
from agent_core.sandboxes.states.file_states import CACHES, FileState, is_below
from agent_core.tools import paths

STATE = f"{paths.OWN}/{folders.STATE}"
"""HOME and /tmp of the workspace's sandbox, and the gateway's notes about it."""
_OF_STATE = (f"{STATE}/{folders.HOME}", f"{STATE}/{folders.TMP}", f"{STATE}/e2b.json")


class SnapshotRefused(Exception):
    """The workspace is too large, or cannot be read; the text says which."""


MAX_DEPTH = 100
"""Maximum depth of folders; deeper ones are skipped."""


def choose_files(workspace: Path, most: int) -> tuple[dict[str, FileState], tuple[str, ...]]:
    """The files to keep, without digests, and the folders that are left out: the largest caches,
    where all has more than `most` bytes. SnapshotRefused."""
    return _choose(dict(scan_files(workspace)), most)


def choose_all(workspace: Path, most: int) -> tuple[dict[str, FileState], tuple[str, ...]]:
    """Choose like `choose_files`, with HOME and /tmp of the sandbox as far as they fit. Blocks."""
    files, state = dict(scan_files(workspace)), dict(_scan_state(workspace))
    try:
        return _choose(files | state, most)
    except SnapshotRefused:
        found, left_out = _choose(files, most)
        return found, (*left_out, STATE)


def scan_files(workspace: Path, start: str = "") -> Iterator[tuple[str, FileState]]:
    """Yield the states below the workspace, or its folder `start`, without the gateway's own;
    SnapshotRefused if there are too many."""
    count, began = 0, ambient.monotonic()
    top = Path(os.path.realpath(workspace)) / start
    for entry in paths.walk(workspace, top, depth=MAX_DEPTH):
        count += 1
        info = entry.info
        if stat.S_ISDIR(info.st_mode) and entry.path.count("/") >= MAX_DEPTH:
            raise SnapshotRefused(f"The workspace has folders within {MAX_DEPTH} others.")
        kind = next((name for name, fits in _KINDS if fits(info.st_mode)), "")
        if not kind:
            continue
        size = info.st_size if kind == "file" else 0
        target = ""
        if kind == "link":
            target = os.fsencode(paths.read_link(workspace, top / entry.path)).hex()
        mode = stat.S_IMODE(info.st_mode)
        path = f"{start}/{entry.path}" if start else entry.path
        yield path, FileState(kind, mode, size, info.st_ctime_ns, info.st_ino, target)
    if count >= paths.MAX_ENTRIES or ambient.monotonic() - began > paths.MAX_SECONDS:
        raise SnapshotRefused(f"The workspace has more than {count:,} files.")


_KINDS = (("file", stat.S_ISREG), ("folder", stat.S_ISDIR), ("link", stat.S_ISLNK))


def _scan_state(workspace: Path) -> Iterator[tuple[str, FileState]]:
    for path, state in scan_files(workspace, STATE):
        if any(is_below(path, one) for one in _OF_STATE):
            yield path, state


def _choose(found: dict[str, FileState], most: int) -> tuple[dict[str, FileState], tuple[str, ...]]:
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
        if total <= most:
            break
        left_out.append(top)
        total -= caches[top]
        found = {path: one for path, one in found.items() if not is_below(path, top)}
    if total > most:
        size, limit = f"{total / 1e6:.0f} MB", f"{most / 1e6:.0f} MB"
        raise SnapshotRefused(f"The workspace has {size}, more than {limit}.")
    return found, tuple(left_out)
