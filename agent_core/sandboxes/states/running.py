"""Programs that commands left running in the sandboxes of workspaces, so that the model is told
once which are gone: after a stop, an end of the sandbox, or one of the gateway.

What ran is stored in the workspace's own place as often as it changes, since a killed gateway says
nothing at its end.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from agent_core.errors import ToolFailed
from agent_core.tools import backups, paths

log = logging.getLogger("turnkeeper.sandboxes")

_FILE = f"{paths.OWN}/running.json"
_MAX_FILE = 100_000
_MAX_TOLD = 12
"""Programs that are named."""
_MIN_SECRET = 6
"""Characters of a lent value from which on it is hidden in a program's words."""
_GONE = (
    "[Not running any more (stopped, or ended with the sandbox or the gateway): {programs}. Start "
    "again what is still needed.]\n"
)


class RunningProgram(Struct, frozen=True, kw_only=True):
    """A program that stays after its command. `ports`: those that it listens at."""

    words: str
    ports: tuple[int, ...] = ()

    def describe(self) -> str:
        """Describe it in one line."""
        shown = paths.display_path(" ".join(self.words.split()))
        at = f" (port {', '.join(map(str, self.ports))})" if self.ports else ""
        return f"`{shown.replace('`', chr(39))}`{at}"


class _Page(Struct, kw_only=True):
    """One workspace: what runs in its sandbox and in the one that reveals secrets, and what is gone
    and was not told."""

    plain: tuple[RunningProgram, ...] = ()
    revealing: tuple[RunningProgram, ...] = ()
    gone: tuple[RunningProgram, ...] = ()


class RunningBook:
    """The programs in all sandboxes of this process, and of the ones before it. `spawn` runs work
    in the background."""

    def __init__(self, spawn: Callable[[Coroutine[None, None, None]], None]) -> None:
        self._spawn = spawn
        self._pages: dict[Path, _Page] = {}
        self._lent: dict[Path, set[str]] = {}
        self._saved: dict[Path, bytes] = {}
        self._writing: set[Path] = set()

    async def load(self, workspace: Path) -> None:
        """Read what ran in an earlier process, unless the workspace is known."""
        if workspace not in self._pages:
            found = await asyncio.to_thread(_read, workspace)
            gone = (*found.gone, *found.plain, *found.revealing)
            self._pages.setdefault(workspace, _Page(gone=gone))
            self._saved.setdefault(workspace, msgspec.json.encode(found))

    def hide(self, workspace: Path, lent: Mapping[str, str]) -> None:
        """Hide these values of variables in what is stored."""
        if values := {one for one in lent.values() if len(one) >= _MIN_SECRET}:
            self._lent.setdefault(workspace, set()).update(values)

    def note(
        self, workspace: Path, reveals: bool, running: Collection[RunningProgram] = ()
    ) -> None:
        """Note what runs now in one of the workspace's sandboxes."""
        page = self._pages.get(workspace)
        if page is None:
            return
        lent = sorted(self._lent.get(workspace, ()), key=len, reverse=True)
        found = tuple(_hide(one, lent) for one in running)
        if found == (page.revealing if reveals else page.plain):
            return
        if reveals:
            page.revealing = found
        else:
            page.plain = found
        self._spawn(self.save(workspace))

    def lose(self, workspace: Path, reveals: bool) -> None:
        """Note that what ran in this sandbox is gone."""
        if (page := self._pages.get(workspace)) is not None:
            page.gone = (*page.gone, *(page.revealing if reveals else page.plain))
            self.note(workspace, reveals)

    def take(self, workspace: Path) -> str:
        """Describe once, for the model, what is gone; "" for nothing."""
        page = self._pages.get(workspace)
        if page is None or not page.gone:
            return ""
        named = list(dict.fromkeys(one.describe() for one in page.gone))
        page.gone = ()
        self._spawn(self.save(workspace))
        more = [f"and {len(named) - _MAX_TOLD} more"] if len(named) > _MAX_TOLD else []
        return _GONE.format(programs="; ".join((*named[:_MAX_TOLD], *more)))

    async def save(self, workspace: Path) -> None:
        """Store the present state of the workspace; a call under way stores what changes
        meanwhile."""
        if workspace in self._writing:
            return
        self._writing.add(workspace)
        try:
            while (page := self._pages.get(workspace)) is not None:
                data = msgspec.json.encode(page)
                if data == self._saved.get(workspace):
                    break
                self._saved[workspace] = data
                await asyncio.to_thread(_write, workspace, data)
        finally:
            self._writing.discard(workspace)

    def forget(self, workspace: Path) -> None:
        """Drop a workspace without sandboxes from memory, unless it is being stored."""
        if workspace in self._writing:
            return
        self._pages.pop(workspace, None)
        self._lent.pop(workspace, None)
        self._saved.pop(workspace, None)


def _hide(program: RunningProgram, lent: Iterable[str]) -> RunningProgram:
    words = program.words
    for value in lent:
        words = words.replace(value, "…")
    return RunningProgram(words=words, ports=program.ports)


def _read(workspace: Path) -> _Page:
    try:
        with paths.open_read(workspace, _FILE) as file:
            return msgspec.json.decode(file.read(_MAX_FILE), type=_Page)
    except (ToolFailed, OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Page()


def _write(workspace: Path, data: bytes) -> None:
    if not paths.is_made(workspace):
        return  # erased meanwhile
    try:
        backups.store(workspace, Path(os.path.realpath(workspace)) / _FILE, data, 0o600)
    except (ToolFailed, OSError) as error:
        log.warning("running_not_saved", extra={"why": str(error)})
