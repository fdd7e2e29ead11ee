"""Files passed along with delegated work: which, how many, how large.

All agents of a conversation work in its one workspace, so nothing is copied: the other agent reads
the files there. Its own results are files there too.
"""

import os
import stat
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from msgspec import Struct

from agent_core.errors import ToolFailed
from agent_core.tools import paths
from agent_core.tools.globs import MAX_DEPTH, Glob

PATTERNS = ("*.py", "*.csv", "*.json", "*.txt", "*.md", "*.html", "*.js", "*.ts")
"""The files passed along by default."""
MAX_FILES = 10
MAX_BYTES = 50_000_000
SCANNED = 5_000


class Artifact(Struct, frozen=True, kw_only=True):
    """A file of the workspace; `size` in bytes, 0 if it was not looked at."""

    path: str
    size: int = 0


def collect(workspace: Path, patterns: Iterable[str] = PATTERNS) -> list[Artifact]:
    """The files that fit, the newest first, within MAX_FILES and MAX_BYTES. Raises ToolFailed
    if a pattern leaves the workspace or fits nothing."""
    wanted = tuple(patterns)
    for pattern in wanted:
        if why := paths.why_refused(pattern):
            raise ToolFailed(f"{pattern}: {why}")
    found = sorted(_list_matching(workspace, wanted), key=lambda one: -one[2])
    if not found:
        raise ToolFailed(f"No file of the workspace fits {', '.join(wanted)}.")
    taken: list[Artifact] = []
    room = MAX_BYTES
    for path, size, _ in found:
        if size <= room and len(taken) < MAX_FILES:
            room -= size
            taken.append(Artifact(path=path, size=size))
    if not taken:
        raise ToolFailed(f"The files are too large to hand over: {MAX_BYTES:,} bytes at most.")
    return taken


def _list_matching(workspace: Path, patterns: tuple[str, ...]) -> list[tuple[str, int, float]]:
    """(path, bytes, changed at) of the files that fit, links left out."""
    globs = [Glob(pattern, classes=True) for pattern in patterns]
    found: list[tuple[str, int, float]] = []
    root = Path(os.path.realpath(workspace))
    for entry in islice(paths.walk(workspace, root, MAX_DEPTH), SCANNED):
        shown, name = paths.display_path(entry.path), entry.path.rpartition("/")[2]
        if any(part.startswith(".") for part in entry.path.split("/")[:-1]):
            continue
        fits = any(glob.fits(text) for glob in globs for text in (name, entry.path, shown))
        if fits and stat.S_ISREG(entry.info.st_mode) and not paths.why_refused(shown):
            found.append((shown, entry.info.st_size, entry.info.st_mtime))
    return found
