"""Restarts the servers of apps whose sandbox is gone, when somebody opens them.

The command that ran before is run again, on behalf of a visitor alone: therefore only in a sandbox
that contains it, without hosts and without secrets.
"""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from agent_core.errors import NotShown
from agent_core.phrases import phrase
from agent_core.sandboxes.port import ProcessResult
from agent_core.tools import paths

log = logging.getLogger("turnkeeper.previews")

SECONDS = 90.0
"""Seconds for a server to start."""
StartsAgain = Callable[[Path, str], Awaitable[None]]


async def start_nothing(workspace: Path, command: str) -> None:
    """Leave it."""


class StartedCommand(Protocol):
    """The result of `ContainingSandbox.start`."""

    async def wait(self, seconds: float) -> ProcessResult | None:
        """Return its result, None while it still runs."""

    async def end(self) -> None:
        """Abandon it; its background processes stay."""


class ContainingSandbox(Protocol):
    """The sandbox in which apps run."""

    @property
    def isolated(self) -> bool:
        """The tier's."""

    @property
    def contains(self) -> bool:
        """True if the self-test passed."""

    async def start(self, command: str, cwd: Path, limit: float) -> StartedCommand:
        """Start a command; see the port `Sandbox`."""


class AppStarter:
    """`ready` returns when the self-test has run."""

    def __init__(self, sandbox: ContainingSandbox, ready: Callable[[], Awaitable[object]]) -> None:
        self._sandbox, self._ready = sandbox, ready

    async def start(self, workspace: Path, command: str) -> None:
        """Start it and wait until it answers; NotShown if it does not. Does nothing where that is
        not allowed, or the workspace is gone."""
        await self._ready()
        if not (self._sandbox.isolated and self._sandbox.contains and paths.is_made(workspace)):
            return
        process = await self._sandbox.start(command, workspace, SECONDS)
        try:
            done = await process.wait(SECONDS)
        finally:
            await process.end()
        failed = done is None or done.exit_code != 0
        log.info("preview_started_again", extra={"failed": failed})
        if failed:
            raise NotShown(phrase("preview_down"))
