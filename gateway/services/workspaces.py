"""Folders of conversations that are gone: set aside under another name at once, removed some days
after their last use. What a bucket holds of them is removed at once. All of it blocks."""

import logging
import os
import shutil
from pathlib import Path
from typing import Protocol

from agent_core import ambient
from gateway.messages import digest

WORKSPACES = "workspaces"
"""The folder of the conversations' workspaces, in the data folder."""
GONE = ".gone"
UNERASED = ".unerased"
"""Stands for a workspace that a bucket may still hold something of."""
log = logging.getLogger("turnkeeper.workspaces")


class ErasesWorkspaces(Protocol):
    """A bucket of snapshots."""

    def erase(self, workspace: str) -> None:
        """Remove all that is stored of this workspace. OSError."""


class Workspaces:
    """The workspaces below `folder`, named after their conversations. `bucket`: where their
    snapshots are, None for the workspaces themselves."""

    def __init__(self, folder: Path, bucket: ErasesWorkspaces | None = None) -> None:
        self._folder, self._bucket = folder, bucket

    def set_aside(self, conversation: str) -> None:
        """From now on the conversation has none; a second time there is nothing to do."""
        own = self._folder / digest(conversation.encode())
        if own.is_dir() and not own.is_symlink():
            own.rename(own.with_name(f"{own.name}.{ambient.new_id()}{GONE}"))
            self._erase(own.name)

    def remove(self, conversation: str) -> None:
        """Remove the conversation's folder, and those that were set aside before."""
        name = digest(conversation.encode())
        self._erase(name)
        for path in (self._folder / name, *self._folder.glob(f"{name}.*{GONE}")):
            shutil.rmtree(path, ignore_errors=True)

    def tidy(self, before: float) -> int:
        """Remove those set aside that were last used before `before` (seconds since 1970), and
        what a bucket could not remove before."""
        for mark in self._folder.glob(f"*{UNERASED}"):
            self._erase(mark.name.removesuffix(UNERASED))
        old = [one for one in self._folder.glob(f"*{GONE}") if find_last_use(one) < before]
        for path in old:
            shutil.rmtree(path, ignore_errors=True)
        return len(old)

    def _erase(self, name: str) -> None:
        """Have the bucket forget the workspace; where it does not answer, later."""
        if self._bucket is None:
            return
        mark = self._folder / f"{name}{UNERASED}"
        self._folder.mkdir(parents=True, exist_ok=True)
        mark.touch()  # before it is asked: a kill on the way leaves it to do
        try:
            self._bucket.erase(name)
        except OSError as error:
            log.error("snapshots_not_erased", extra={"why": str(error)})
            return
        mark.unlink(missing_ok=True)


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
