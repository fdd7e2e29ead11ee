"""Folders of conversations that are gone: set aside under another name at once, removed some days
after their last use. All of it blocks."""

import os
import shutil
from pathlib import Path

from agent_core import ambient
from gateway.messages import digest

WORKSPACES = "workspaces"
"""The folder of the conversations' workspaces, in the data folder."""
GONE = ".gone"


class Workspaces:
    """The workspaces below `folder`, named after their conversations."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def set_aside(self, conversation: str) -> None:
        """From now on the conversation has none; a second time there is nothing to do."""
        own = self._folder / digest(conversation.encode())
        if own.is_dir() and not own.is_symlink():
            own.rename(own.with_name(f"{own.name}.{ambient.new_id()}{GONE}"))

    def remove(self, conversation: str) -> None:
        """Remove the conversation's folder, and those that were set aside before."""
        name = digest(conversation.encode())
        for path in (self._folder / name, *self._folder.glob(f"{name}.*{GONE}")):
            shutil.rmtree(path, ignore_errors=True)

    def tidy(self, before: float) -> int:
        """Remove those set aside that were last used before `before` (seconds since 1970)."""
        old = [one for one in self._folder.glob(f"*{GONE}") if find_last_use(one) < before]
        for path in old:
            shutil.rmtree(path, ignore_errors=True)
        return len(old)


def find_last_use(folder: Path) -> float:
    """When something below `folder` was written last; what cannot be looked at does not count."""
    newest = 0.0
    for path, _, files in os.walk(folder):
        for one in (path, *(os.path.join(path, name) for name in files)):
            try:
                newest = max(newest, os.lstat(one).st_mtime)
            except OSError:
                continue
    return newest
