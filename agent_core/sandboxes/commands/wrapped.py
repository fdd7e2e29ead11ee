"""A shell around another one, which does something more for each command."""

from agent_core.sandboxes.port import Shell


class WrappedShell:
    """All of a shell but `run`."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    @property
    def alive(self) -> bool:
        """See the port."""
        return self._shell.alive

    @property
    def gone(self) -> bool:
        """See the port."""
        return self._shell.gone

    def close(self) -> None:
        """See the port."""
        self._shell.close()

    async def wait(self, seconds: float) -> None:
        """See the port."""
        await self._shell.wait(seconds)
