"""Folders of conversations that are gone: set aside under another name at once, removed some days
after their last use. What others hold of them, a bucket or a provider of machines, is removed at
once. All of it blocks."""

import logging
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from agent_core import ambient
from gateway.messages import digest

WORKSPACES = "workspaces"
"""The folder of the conversations' workspaces, in the data folder."""
GONE = ".gone"
UNERASED = ".unerased"
"""Stands for a workspace that somebody else may still hold something of: `<name>.<kind>`."""
log = logging.getLogger("turnkeeper.workspaces")


class HoldsWorkspaces(Protocol):
    """Who else holds something of workspaces; `kind` names it."""

    kind: str

    def find(self, workspace: Path) -> str | None:
        """What it holds of this folder, in words of its own; None for nothing."""

    def erase(self, workspace: str, what: str) -> None:
        """Remove that. OSError."""


class Workspaces:
    """The workspaces below `folder`, named after their conversations. `holders`: who else holds
    something of them."""

    def __init__(self, folder: Path, holders: Sequence[HoldsWorkspaces] = ()) -> None:
        self._folder = folder
        self._holders = {one.kind: one for one in holders}

    def set_aside(self, conversation: str) -> None:
        """From now on the conversation has none; a second time there is nothing to do."""
        own = self._folder / digest(conversation.encode())
        if own.is_dir() and not own.is_symlink():
            self._erase(own)
            own.rename(own.with_name(f"{own.name}.{ambient.new_id()}{GONE}"))

    def remove(self, conversation: str) -> None:
        """Remove the conversation's folder, and those that were set aside before."""
        name = digest(conversation.encode())
        self._erase(self._folder / name)
        for path in (self._folder / name, *self._folder.glob(f"{name}.*{GONE}")):
            shutil.rmtree(path, ignore_errors=True)

    def tidy(self, before: float) -> int:
        """Remove those set aside that were last used before `before` (seconds since 1970), and
        what others could not remove before."""
        for mark in self._folder.glob(f"*.*{UNERASED}"):
            self._erase_marked(mark)
        old = [one for one in self._folder.glob(f"*{GONE}") if find_last_use(one) < before]
        for path in old:
            shutil.rmtree(path, ignore_errors=True)
        return len(old)

    def _erase(self, own: Path) -> None:
        """Have the others forget the workspace; where one does not answer, later."""
        for kind, holder in self._holders.items():
            if (what := holder.find(own)) is not None:
                mark = self._folder / f"{own.name}.{kind}{UNERASED}"
                self._folder.mkdir(parents=True, exist_ok=True)
                mark.write_text(what)  # before it is asked: a kill on the way leaves it to do
                self._erase_marked(mark)

    def _erase_marked(self, mark: Path) -> None:
        name, kind, _ = mark.name.split(".")
        if (holder := self._holders.get(kind)) is None:
            return
        try:
            holder.erase(name, mark.read_text())
        except OSError as error:
            log.error("workspace_not_erased", extra={"kind": kind, "why": str(error)})
            return
        mark.unlink(missing_ok=True)


def is_erased(workspace: Path) -> bool:
    """What others hold of the workspace is to go, and did not go yet."""
    return any(workspace.parent.glob(f"{workspace.name}.*{UNERASED}"))


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
