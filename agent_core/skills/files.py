"""Files that skills make: their names, and how they are written into the workspace."""

import re
from pathlib import Path

from agent_core.errors import ToolFailed
from agent_core.tools import backups, paths


def slug(words: str, otherwise: str) -> str:
    """`words` as a file's name."""
    return re.sub(r"[^\w]+", "-", words.casefold())[:40].strip("-_") or otherwise


def free(workspace: Path, stem: str, end: str) -> str:
    """A path that nothing has yet."""
    names = (f"{stem}{number}{end}" for number in ("", *(f"-{n}" for n in range(2, 1_000))))
    for name in names:
        if not paths.resolve(workspace, name, write=True).exists():
            return name
    raise ToolFailed(f"There are too many files like {stem}{end}. Choose another name.")


def store(workspace: Path, path: str, content: bytes) -> None:
    """Write the file, whole or not at all."""
    try:
        backups.store(workspace, paths.resolve(workspace, path, write=True), content, 0o644)
    except OSError as error:
        raise paths.failed(path, error) from None
