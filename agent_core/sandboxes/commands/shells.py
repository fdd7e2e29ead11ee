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
"""Seconds for a killed shell to be gone."""
REMEMBERED = 256
"""Workspaces of which it is known why their last shell ended."""


class WorkspaceShell:
    """The shell of one workspace, for the holder of its lock. `top` and `folder`: the workspace's
    and the current folder's names inside; `name`: its own; `commands`: how many were run, each of
    which may have changed the meaning of a word."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.session: Shell | None = None
        self.top = self.folder = ""
        self.name, self.commands = "", 0
        self.used = 0.0
        self.waiting = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def alive(self) -> bool:
        """True if there is a shell that takes commands."""
        return self.session is not None and self.session.alive

    def end(self) -> None:
        """Kill the shell, with all that it started."""
        self.replace_timer()
        if self.session is not None:
            self.session.close()

    def replace_timer(self, timer: asyncio.TimerHandle | None = None) -> None:
        """Cancel the timer that ends an idle shell; `timer` takes its place, if given."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = timer


class Shells:
    """All shells of this process."""

    def __init__(self) -> None:
        self._shells: dict[Path, WorkspaceShell] = {}
        self._begun: list[Shell] = []  # all shells not known to have ended, attached or not
        self._why: dict[Path, str] = {}

    @asynccontextmanager
    async def hold(self, workspace: Path, idle: float) -> AsyncIterator[WorkspaceShell]:
        """Wait for the workspace's shell in order; a shell left there is ended if nobody comes for
        `idle` seconds."""
        shell = self._shells.setdefault(workspace, WorkspaceShell())
        shell.waiting += 1
        try:
            async with shell.lock:
                shell.replace_timer()
                yield shell
        finally:
            shell.waiting -= 1
            shell.used = ambient.monotonic()
            if shell.lock.locked():
                pass  # an abandoned waiter does not set the clock of a working command
            elif shell.alive:
                loop = asyncio.get_running_loop()
                why = f"it was idle for {idle / 60:g} minutes"
                shell.replace_timer(loop.call_later(idle, self.end, workspace, why))
            elif not shell.waiting and self._shells.get(workspace) is shell:
                del self._shells[workspace]

    async def open(
        self, shell: WorkspaceShell, sandbox: Sandbox, workspace: Path, limit: float
    ) -> Shell:
        """Open a new session of `shell`. Its processes may use `limit` seconds of CPU time."""
        self._make_room()
        shell.session = session = await sandbox.open_shell(workspace, limit)
        shell.name, shell.commands = ambient.new_id(), 0
        self._begun = [*(one for one in self._begun if not one.gone), session]
        try:
            at = await session.run("true", DEATH, lambda text: None)
            shell.top = shell.folder = at.folder
        except BaseException:
            session.close()
            raise
        return session

    def describe(self, workspace: Path) -> str:
        """Return a text that changes whenever the workspace's shell is replaced or runs a command;
        "" if none was given any command."""
        shell = self._shells.get(workspace)
        return (
            f"{shell.name} {shell.commands}"
            if shell is not None and shell.alive and shell.commands
            else ""
        )

    def take_reason(self, workspace: Path) -> str:
        """Return, once, why the last shell of the workspace ended, "" if unknown."""
        return self._why.pop(workspace, "")

    def end(self, workspace: Path, why: str) -> None:
        """End the workspace's shell, if there is one, because of `why`."""
        shell = self._shells.get(workspace)
        if shell is None:
            return
        if shell.session is not None and workspace not in self._why:
            self.note(workspace, why)  # also where its sandbox ended a moment before
        shell.end()
        if not shell.waiting:
            del self._shells[workspace]

    def note(self, workspace: Path, why: str) -> None:
        """Remember why the workspace's shell ended, or will have."""
        self._why[workspace] = why
        while len(self._why) > REMEMBERED:
            del self._why[next(iter(self._why))]

    def halt(self, workspace: Path | None = None) -> None:
        """End the shell of this workspace, or all: a person stopped their work."""
        for place in [workspace] if workspace is not None else list(self._shells):
            self.end(place, "it was stopped")

    async def close(self) -> None:
        """End all of them, and wait until they are gone."""
        self.halt()
        for session in self._begun:
            await session.wait(DEATH)

    def _make_room(self) -> None:
        alive = {place: shell for place, shell in self._shells.items() if shell.alive}
        idle = sorted((shell.used, place) for place, shell in alive.items() if not shell.waiting)
        for _, place in idle[: max(0, len(alive) - MAX_SHELLS + 1)]:
            self.end(place, "others needed its place")
