"""Finds files with secrets (`.env`, keys, tokens), which cannot be read inside a sandbox.

A command that names one is asked about, and an approved one sees them all. Everything else,
including code, wildcards and child processes, finds them unreadable. A file written by a command is
not hidden from the next one: it is no secret to the sandbox.
"""

import os
import stat
from pathlib import Path

from msgspec import Struct

from agent_core import ambient
from agent_core.sandboxes.states.file_states import CACHES
from agent_core.tools import paths, secret_files

MAX_MASKS = 200
"""Files and folders that one sandbox hides."""
_MAX_LOOKED = 64 << 10
_MAX_INDEX = 16 << 20
_DEEPEST = 64
_MAX_PLACES = 256


class SecretFiles(Struct, frozen=True, kw_only=True):
    """Files and folders with secrets in a workspace, each with the time of its last change in
    seconds. `complete`: there are no more. `repositories`: git folders. `places`: folders that
    change as soon as a file with secrets is added, each with its inode and the time of its change
    in nanoseconds; empty where that cannot be relied on."""

    changed: dict[str, float] = {}
    folders: frozenset[str] = frozenset()
    complete: bool = True
    repositories: tuple[str, ...] = ()
    places: dict[str, tuple[int, int]] = {}

    def find_new(self, known: "SecretFiles", since: float) -> tuple[str, ...]:
        """Return unknown ones that came after `since`: no command made them."""
        return tuple(
            path
            for path, changed in self.changed.items()
            if path not in known.changed and changed > since
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Their paths."""
        return tuple(self.changed)


NO_SECRETS = SecretFiles()


def find_secret_files(workspace: Path) -> SecretFiles:
    """Find them; a folder with secrets counts as one. Files that programs install (`node_modules`,
    `.venv`) are skipped. Blocks."""
    root, until = Path(os.path.realpath(workspace)), ambient.monotonic() + paths.MAX_SECONDS
    changed, folders, repositories = dict[str, float](), set[str](), list[str]()
    looked, tick = 0, ambient.read_file_clock()
    places = paths.read_changes(root, [""])
    for entry in paths.walk(root, root, _DEEPEST, CACHES | {".git"}):
        looked += 1
        parent, _, name = entry.path.rpartition("/")
        mode = entry.info.st_mode
        if stat.S_ISDIR(mode) or name.casefold().endswith(".pem"):  # its content decides
            places[entry.path] = entry.info.st_ino, entry.info.st_ctime_ns
        if name == ".git" and stat.S_ISDIR(mode):
            repositories.append(entry.path)
        elif not secret_files.is_secret(name) or any(
            map(secret_files.is_secret, parent.split("/"))
        ):
            continue
        elif stat.S_ISLNK(mode):
            if target := _follow(root, entry.path):
                changed[target] = entry.info.st_ctime
        elif stat.S_ISDIR(mode) or (stat.S_ISREG(mode) and _may_be_secret(root, entry.path)):
            changed[entry.path] = entry.info.st_ctime
            folders.update((entry.path,) if stat.S_ISDIR(mode) else ())
        if len(changed) > MAX_MASKS:
            break
    whole = looked < paths.MAX_ENTRIES and ambient.monotonic() < until
    return SecretFiles(
        changed=dict(list(changed.items())[:MAX_MASKS]),
        folders=frozenset(folders),
        complete=whole and len(changed) <= MAX_MASKS,
        repositories=tuple(repositories),
        places=_choose_places(places, tick) if whole else {},
    )


def is_unchanged(workspace: Path, found: SecretFiles) -> bool:
    """Return True if no file with secrets has been added since. Blocks briefly."""
    now = paths.read_changes(workspace, found.places)
    return bool(found.places) and now == found.places


def _choose_places(places: dict[str, tuple[int, int]], tick: int) -> dict[str, tuple[int, int]]:
    """Return {} if there are many, or one has changed so lately (at the `tick` of the file clock,
    or since) that its next change might have the same time."""
    late = any(changed >= tick for _, changed in places.values())
    return {} if late or len(places) > _MAX_PLACES else places


def has_committed(workspace: Path, found: SecretFiles) -> bool:
    """True if a repository's index names a secret file: git shows it, though it is hidden.
    Blocks."""
    return any(_names_secret(workspace, one) for one in found.repositories)


def _follow(root: Path, path: str) -> str:
    """Return the workspace file that the link leads to, "" for none."""
    try:
        real = Path(os.path.realpath(root / path))
    except OSError:  # it is swapped for a file just now, which has its own name
        return ""
    if not real.is_relative_to(root) or (root / paths.OWN) in real.parents:
        return ""
    return str(real.relative_to(root)) if paths.is_file(root, real) else ""


def _may_be_secret(root: Path, path: str) -> bool:
    """False for certificates, which are public."""
    if not path.casefold().endswith(".pem"):
        return True
    data = paths.read_beginning(root, path, _MAX_LOOKED)
    return b"PRIVATE KEY" in data or b"BEGIN CERTIFICATE" not in data


def _names_secret(workspace: Path, repository: str) -> bool:
    data = paths.read_beginning(workspace, f"{repository}/index", _MAX_INDEX)
    named = {part for path in data.split(b"\0") for part in path.split(b"/")[-3:]}
    sized = (name for name in named if 3 < len(name) < 80)
    plain = {os.fsdecode(one) for name in sized for one in (name, name[1:])}
    return any(map(secret_files.is_secret, plain))  # the first byte of a path is its length
