"""A shell that stays in a sandbox elsewhere: files are carried around each of its commands."""

from collections.abc import Awaitable, Callable, Mapping

from msgspec.structs import replace

from agent_core.sandboxes.commands.wrapped import WrappedShell
from agent_core.sandboxes.port import NOTHING, Ran, Shell


class CarriedShell(WrappedShell):
    """A running shell in a copied workspace. `before` and `after` copy the files; the second
    receives the command, and returns a note for its output."""

    def __init__(
        self,
        shell: Shell,
        before: Callable[[], Awaitable[None]],
        after: Callable[[str], Awaitable[str]],
    ) -> None:
        super().__init__(shell)
        self._before, self._after = before, after

    async def run(
        self,
        command: str,
        limit: float,
        live: Callable[[str], None],
        env: Mapping[str, str] = NOTHING,
    ) -> Ran:
        """See the port."""
        await self._before()
        ran = await self._shell.run(command, limit, live, env)
        if not ran.folder:
            return ran  # it ended with the command, and files were transferred at its end
        note = await self._after(command)
        output = f"{ran.done.output.rstrip()}\n{note}\n".lstrip() if note else ran.done.output
        return replace(ran, done=replace(ran.done, output=output))
