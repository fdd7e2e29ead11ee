"""Background commands and lasting shells, by workspace and handle, in memory only.

None outlives the gateway's process, so nothing is kept on disk: after a restart a handle is
unknown. Handles are random, so that an old one never names a new command.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.sandboxes.commands.shells import Shells
from agent_core.sandboxes.port import NO_PERMITS, Permits, ProcessResult, Running, Sandbox

MAX_COMMANDS = 4
"""Commands that run at once in one workspace."""
MAX_KEPT = 8
"""Commands of a workspace, ended ones included, whose output is kept."""
DEATH = 5.0
"""Seconds for a killed command to be gone."""
KEEP = 3_600.0
"""Seconds that an ended command's output is kept at least, unless others take its place."""


class BackgroundCommand:
    """One background command. `limit` in seconds."""

    def __init__(
        self,
        words: str,
        limit: float,
        permits: Permits = NO_PERMITS,
    ) -> None:
        self.words = words
        self._permits = permits
        self.limit = limit
        self.stopped = False
        self._began = ambient.monotonic()
        self._running: Running | None = None

    async def begin(self, sandbox: Sandbox, workspace: Path) -> None:
        """Start it."""
        running = await sandbox.start(self.words, workspace, self.limit, self._permits)
        self._running = running
        if self.stopped:
            running.kill()

    @property
    def alive(self) -> bool:
        """True if it runs, or is about to."""
        return self._running is None or self._running.done is None

    @property
    def age(self) -> float:
        """Seconds since it was started."""
        return ambient.monotonic() - self._began

    @property
    def done(self) -> ProcessResult | None:
        """Its result, None while it runs."""
        return self._running.done if self._running is not None else None

    def output(self) -> str:
        """Return its bounded output so far."""
        return self._running.output() if self._running is not None else ""

    async def wait(self, seconds: float) -> None:
        """Wait at most `seconds` for its end."""
        if self._running is not None:
            await self._running.wait(seconds)

    def stop(self) -> None:
        """End it, with all that it started."""
        if self.alive:
            self.stopped = True
        if self._running is not None:
            self._running.kill()


class Background:
    """All background commands of this process."""

    def __init__(self) -> None:
        self._commands: dict[Path, dict[str, BackgroundCommand]] = {}
        self.shells = Shells()

    async def start(
        self,
        sandbox: Sandbox,
        words: str,
        workspace: Path,
        limit: float,
        permits: Permits = NO_PERMITS,
    ) -> str:
        """Start a command; its handle. ToolFailed if too many run already."""
        own = self._commands.setdefault(workspace, {})
        alive = [handle for handle, command in own.items() if command.alive]
        if len(alive) >= MAX_COMMANDS:
            raise ToolFailed(
                f"Not run: {MAX_COMMANDS} commands run in the background already "
                f"({', '.join(alive)}). "
                "Stop one by check_command, or wait for its end."
            )
        for ended in [name for name in own if name not in alive][: len(own) - MAX_KEPT + 1]:
            del own[ended]
        handle = f"command-{ambient.token(5)}"
        command = BackgroundCommand(words, limit, permits)
        own[handle] = command
        try:
            await command.begin(sandbox, workspace)
        except BaseException:
            self._forget(workspace, handle)
            raise
        asyncio.get_running_loop().call_later(limit + KEEP, self._forget, workspace, handle)
        return handle

    def find(self, workspace: Path, handle: str) -> BackgroundCommand | None:
        """The command `handle` of this workspace and no other."""
        return self._commands.get(workspace, {}).get(handle)

    def halt(self, workspace: Path | None = None) -> int:
        """End the background commands and the shell of this workspace, or of all; return how many
        commands were not being ended yet."""
        self.shells.halt(workspace)
        alive = [one for one in self._list_in(workspace) if one.alive and not one.stopped]
        for command in alive:
            command.stop()
        return len(alive)

    async def close(self) -> None:
        """End everything, and wait until it is gone."""
        await self.shells.close()
        self.halt()
        for command in list(self._list_in(None)):
            await command.wait(DEATH)

    def _list_in(self, workspace: Path | None) -> Iterator[BackgroundCommand]:
        for place, commands in self._commands.items():
            if workspace is None or place == workspace:
                yield from commands.values()

    def _forget(self, workspace: Path, handle: str) -> None:
        own = self._commands.get(workspace, {})
        own.pop(handle, None)
        if not own:
            self._commands.pop(workspace, None)
