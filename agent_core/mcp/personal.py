"""The servers as one person reaches them, in one conversation."""

from collections.abc import Iterable
from pathlib import Path

from agent_core.mcp.oauth.grants import SignInPort
from agent_core.mcp.servers import Servers
from agent_core.messages import Mention
from agent_core.tools.contract import Tool
from agent_core.tools.finding.mcp_tools import Definition
from agent_core.tools.finding.toolsets import Reach


class PersonalServers:
    """A turn's `ToolRegistry`: servers with sign-in are reached as its person."""

    def __init__(self, servers: Servers, sign_ins: SignInPort) -> None:
        self._servers, self._sign_ins = servers, sign_ins

    async def seek(self, names: Iterable[str]) -> tuple[Definition, ...]:
        """See `Servers.seek`."""
        return await self._servers.seek(names, self._sign_ins)

    async def list_known(self, reach: Reach) -> tuple[Definition, ...]:
        """See `Servers.list_known`."""
        return await self._servers.list_known(reach, self._sign_ins)

    def make(self, definition: Definition) -> Tool:
        """See `Servers.make`."""
        return self._servers.make(definition, self._sign_ins)

    def refresh(self) -> None:
        """See `Servers.refresh`."""
        self._servers.refresh()

    async def read(self, mention: Mention, workspace: Path, key: str) -> str:
        """See `Servers.read`."""
        return await self._servers.read(mention, workspace, key, self._sign_ins)
