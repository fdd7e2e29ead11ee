"""Files that skills make: their names, and how they are written into the workspace."""

import os
import re
from pathlib import Path

from agent_core.errors import ToolFailed
from agent_core.tools import backups, paths

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def slug(words: str, otherwise: str) -> str:
    """`words` as a file's name."""
    return re.sub(r"[^\w]+", "-", words.casefold())[:40].strip("-_") or otherwise


def add(workspace: Path, stem: str, end: str, content: bytes) -> str:
    """Write a new file and return its path. Concurrent calls get different files."""
    paths.take_room(workspace, len(content))
    names = (f"{stem}{number}{end}" for number in ("", *(f"-{n}" for n in range(2, 1_000))))
    for name in names:
        real = paths.resolve(workspace, name, write=True)
        try:
            with paths.folder(workspace, real.parent, create=True) as parent:
                os.close(os.open(real.name, _NEW, 0o600, dir_fd=parent))
            backups.store(workspace, real, content, 0o644)
        except FileExistsError:
            continue
        except OSError as error:
            raise paths.as_tool_failure(name, error) from None
        return name
    raise ToolFailed(f"There are too many files like {stem}{end}. Choose another name.")


def store(workspace: Path, path: str, content: bytes) -> None:
    """Write the file, whole or not at all; keeps the old one."""
    real = paths.resolve(workspace, path, write=True)
    there = paths.status(workspace, real) is not None
    old = backups.content(workspace, path)[0] if there else None
    paths.take_room(workspace, len(content) + len(old or b""))
    try:
        backups.keep(workspace, real.relative_to(os.path.realpath(workspace)), old)
        backups.store(workspace, real, content, 0o644)
    except OSError as error:
        raise paths.as_tool_failure(path, error) from None
