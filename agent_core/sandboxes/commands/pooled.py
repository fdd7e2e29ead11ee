"""A shell that keeps its sandbox in use while a command runs in it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

from agent_core.errors import ToolFailed
from agent_core.sandboxes.port import NOTHING, Ran, Shell


class PooledShell:
    """A shell in a sandbox of a pool. `use` holds that in use, and tells why the shell must end, ""
    if it need not."""

    def __init__(self, shell: Shell, use: Callable[[], AbstractAsyncContextManager[str]]) -> None:
        self._shell, self._use = shell, use

    @property
    def alive(self) -> bool:
        """See the port."""
        return self._shell.alive

    @property
    def gone(self) -> bool:
        """See the port."""
        return self._shell.gone

    async def run(
        self,
        command: str,
        limit: float,
        live: Callable[[str], None],
        env: Mapping[str, str] = NOTHING,
    ) -> Ran:
        """See the port."""
        async with self._use() as why:
            if why:
                self._shell.close()
                raise ToolFailed(why)
            return await self._shell.run(command, limit, live, env)

    def close(self) -> None:
        """See the port."""
        self._shell.close()

    async def wait(self, seconds: float) -> None:
        """See the port."""
        await self._shell.wait(seconds)
