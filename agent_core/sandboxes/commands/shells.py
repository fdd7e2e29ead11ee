"""The shells that stay, one a workspace: opened when needed, ended when idle for long, in memory
only. None outlives the gateway's process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agent_core import ambient
from agent_core.sandboxes.port import Sandbox, Shell

MAX_SHELLS = 16
"""Shells of all workspaces together; the one that was idle longest makes room."""
DEATH = 5.0
"""Seconds that a killed shell gets to be gone."""
REMEMBERED = 256
"""Workspaces of which it is known why their last shell ended."""


class WorkspaceShell:
    """The shell of one workspace, for who holds its turn. `top`: what it calls the workspace;
    `folder`: where it is, likewise; `name`: its own, `told`: how many commands it was given, each
    of which may have changed what a word means to it."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.session: Shell | None = None
        self.top = self.folder = ""
        self.name, self.told = "", 0
        self.used = 0.0
        self.waiting = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def alive(self) -> bool:
        """There is a shell that takes commands."""
        return self.session is not None and self.session.alive

    def end(self) -> None:
        """Kill the shell, with all that it started."""
        self.rest()
        if self.session is not None:
            self.session.close()

    def rest(self, timer: asyncio.TimerHandle | None = None) -> None:
        """Take `timer` for the end of its idleness, in place of the one before."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = timer


class Shells:
    """All shells of this process."""

    def __init__(self) -> None:
        self._desks: dict[Path, WorkspaceShell] = {}
        self._begun: list[Shell] = []  # all that are not known to be gone, at a desk or not
        self._why: dict[Path, str] = {}

    @asynccontextmanager
    async def turn(self, workspace: Path, idle: float) -> AsyncIterator[WorkspaceShell]:
        """The workspace's desk, when those who came before are through; a shell that stands at it
        afterwards is ended when nobody comes for `idle` seconds."""
        desk = self._desks.setdefault(workspace, WorkspaceShell())
        desk.waiting += 1
        try:
            async with desk.turn:
                desk.rest()
                yield desk
        finally:
            desk.waiting -= 1
            desk.used = ambient.monotonic()
            if desk.turn.locked():
                pass  # who gave up waiting sets no clock for who is at work
            elif desk.alive:
                loop = asyncio.get_running_loop()
                why = f"it was idle for {idle / 60:g} minutes"
                desk.rest(loop.call_later(idle, self.end, workspace, why))
            elif not desk.waiting and self._desks.get(workspace) is desk:
                del self._desks[workspace]

    async def open(
        self, desk: WorkspaceShell, sandbox: Sandbox, workspace: Path, limit: float
    ) -> Shell:
        """A new shell at `desk`. What it runs may take `limit` seconds of computing."""
        self._make_room()
        desk.session = session = await sandbox.open_shell(workspace, limit)
        desk.name, desk.told = ambient.new_id(), 0
        self._begun = [*(one for one in self._begun if not one.gone), session]
        try:
            at = await session.run("true", DEATH, lambda text: None)
            desk.top = desk.folder = at.folder
        except BaseException:
            session.close()
            raise
        return session

    def describe(self, workspace: Path) -> str:
        """Another text as soon as the workspace's shell is another one, or was told something; ""
        where none was told anything."""
        desk = self._desks.get(workspace)
        return f"{desk.name} {desk.told}" if desk is not None and desk.alive and desk.told else ""

    def take_reason(self, workspace: Path) -> str:
        """Why the last shell of the workspace ended, "" if that is not known; told once."""
        return self._why.pop(workspace, "")

    def end(self, workspace: Path, why: str) -> None:
        """End the workspace's shell, if there is one, because of `why`."""
        desk = self._desks.get(workspace)
        if desk is None:
            return
        if desk.alive:
            self.note(workspace, why)
        desk.end()
        if not desk.waiting:
            del self._desks[workspace]

    def note(self, workspace: Path, why: str) -> None:
        """Remember why the workspace's shell ended, or will have."""
        self._why[workspace] = why
        while len(self._why) > REMEMBERED:
            del self._why[next(iter(self._why))]

    def halt(self, workspace: Path | None = None) -> None:
        """End the shell of this workspace, or all: a person stopped what they do."""
        for place in [workspace] if workspace is not None else list(self._desks):
            self.end(place, "it was stopped")

    async def close(self) -> None:
        """End all of them, and see them gone."""
        self.halt()
        for session in self._begun:
            await session.wait(DEATH)

    def _make_room(self) -> None:
        alive = {place: desk for place, desk in self._desks.items() if desk.alive}
        idle = sorted((desk.used, place) for place, desk in alive.items() if not desk.waiting)
        for _, place in idle[: max(0, len(alive) - MAX_SHELLS + 1)]:
            self.end(place, "others needed its place")
