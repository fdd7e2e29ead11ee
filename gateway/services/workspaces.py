"""Workspaces of deleted conversations: renamed at once, removed some days after their last use.

Copies held by others, in a bucket or at a provider of machines, are removed at once. All functions
block.
"""

import logging
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from agent_core import ambient
from agent_core.sandboxes import folders
from gateway.messages import digest

WORKSPACES = "workspaces"
"""The folder of the conversations' workspaces, in the data folder."""
GONE = ".gone"
UNERASED = ".unerased"
"""Marker of a workspace of which another holder may still have something: `<name>.<kind>`."""
log = logging.getLogger("turnkeeper.workspaces")


class HoldsWorkspaces(Protocol):
    """Another holder of workspaces' content; `kind` names it."""

    kind: str

    def find(self, workspace: Path) -> str | None:
        """Return its own name of this folder's copy; None if it has none."""

    def erase(self, workspace: str, what: str) -> None:
        """Remove that. OSError."""


class Workspaces:
    """The workspaces below `folder`, named after their conversations. `holders`: who else holds
    something of them."""

    def __init__(self, folder: Path, holders: Sequence[HoldsWorkspaces] = ()) -> None:
        self._folder = folder
        self._holders = {one.kind: one for one in holders}

    def set_aside(self, conversation: str) -> None:
        """Rename the conversation's workspace. Idempotent."""
        own = self._folder / digest(conversation.encode())
        if own.is_dir() and not own.is_symlink():
            self._erase(own)
            own.rename(own.with_name(f"{own.name}.{ambient.new_id()}{GONE}"))

    def remove(self, conversation: str) -> None:
        """Remove the conversation's folder, and those set aside before."""
        name = digest(conversation.encode())
        self._erase(self._folder / name)
        for path in (self._folder / name, *self._folder.glob(f"{name}.*{GONE}")):
            shutil.rmtree(path, ignore_errors=True)

    def keep_alive(self, conversations: Iterable[str]) -> None:
        """Keep HOME and /tmp of these conversations' sandboxes for another day."""
        for one in conversations:
            folders.note_use(self._folder / digest(one.encode()))

    def tidy(self, before: float) -> int:
        """Remove those set aside that were last used before `before` (seconds since 1970), and
        retry removals at other holders."""
        for mark in self._folder.glob(f"*.*{UNERASED}"):
            self._erase_marked(mark)
        old = [one for one in self._folder.glob(f"*{GONE}") if find_last_use(one) < before]
        for path in old:
            shutil.rmtree(path, ignore_errors=True)
        return len(old)

    def _erase(self, own: Path) -> None:
        """Let the other holders forget the workspace; retried later if one does not answer."""
        for kind, holder in self._holders.items():
            if (what := holder.find(own)) is not None:
                mark = self._folder / f"{own.name}.{kind}{UNERASED}"
                self._folder.mkdir(parents=True, exist_ok=True)
                mark.write_text(what)  # before the request: after a kill it is still to do
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
    """Return True while other holders still have to forget the workspace."""
    return any(workspace.parent.glob(f"{workspace.name}.*{UNERASED}"))


def find_last_use(folder: Path) -> float:
    """Return the time of the last write below `folder`, ignoring what cannot be read."""
    newest = 0.0
    for path, _, files in os.walk(folder):
        for one in (path, *(os.path.join(path, name) for name in files)):
            try:
                newest = max(newest, os.lstat(one).st_mtime)
            except OSError:
                continue
    return newest
