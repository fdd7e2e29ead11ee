"""A shell that keeps its sandbox in use while a command runs in it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

from agent_core.errors import ToolFailed
from agent_core.sandboxes.commands.wrapped import WrappedShell
from agent_core.sandboxes.port import NOTHING, Ran, Shell


class PooledShell(WrappedShell):
    """A shell in a sandbox of a pool. `use` holds that in use during a command with these
    variables, and tells why the shell must end, "" if it need not."""

    def __init__(
        self, shell: Shell, use: Callable[[Mapping[str, str]], AbstractAsyncContextManager[str]]
    ) -> None:
        super().__init__(shell)
        self._use = use

    async def run(
        self,
        command: str,
        limit: float,
        live: Callable[[str], None],
        env: Mapping[str, str] = NOTHING,
    ) -> Ran:
        """See the port."""
        async with self._use(env) as why:
            if why:
                self._shell.close()
                raise ToolFailed(why)
            return await self._shell.run(command, limit, live, env)
