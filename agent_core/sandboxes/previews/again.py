"""Starts the servers of apps again whose sandbox is gone, because somebody looks at them.

It is the command that ran there before, asked for by nobody but who looks: so it is run only where
the sandbox contains it, without hosts and without secrets.
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
"""For a server to come up."""
StartsAgain = Callable[[Path, str], Awaitable[None]]


async def start_nothing(workspace: Path, command: str) -> None:
    """Leave it."""


class StartedCommand(Protocol):
    """What `ContainingSandbox.start` gives."""

    async def wait(self, seconds: float) -> ProcessResult | None:
        """How it ended, None while it runs still."""

    async def end(self) -> None:
        """Leave it; what it left behind stays."""


class ContainingSandbox(Protocol):
    """Where apps run."""

    @property
    def isolated(self) -> bool:
        """The tier's."""

    @property
    def contains(self) -> bool:
        """It was tried, and it does."""

    async def start(self, command: str, cwd: Path, limit: float) -> StartedCommand:
        """As the port `Sandbox` says."""


class AppStarter:
    """`ready`: returns when it is known what the sandbox contains."""

    def __init__(self, sandbox: ContainingSandbox, ready: Callable[[], Awaitable[object]]) -> None:
        self._sandbox, self._ready = sandbox, ready

    async def start(self, workspace: Path, command: str) -> None:
        """Start it and wait until it answers; NotShown if it does not. Nothing is done where it
        may not be, or the workspace is gone."""
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
