"""The servers of tools: set up once, reached by each person as themselves."""

from pathlib import Path

from agent_core.mcp.mentions import ResourceReader
from agent_core.mcp.oauth.grants import SignInOffer
from agent_core.mcp.personal import PersonalServers
from agent_core.mcp.server_facts import ServerFacts
from agent_core.mcp.servers import Servers
from agent_core.memory.provider import MemoryProvider, find_provider
from agent_core.memory.settings import MemorySettings
from agent_core.settings import ToolSettings
from agent_core.tools.finding.mcp_tools import ToolRegistry
from agent_core.tools.send import FileStore
from gateway.conversation.agent import PolicyContext
from gateway.messages import Conversation, Sender
from gateway.services.sign_ins import SignIns


class GatewayServers:
    """`conversation.agent.ServerDirectory`. `folder` holds descriptions of the servers' tools."""

    def __init__(
        self, tools: ToolSettings, folder: Path, file_store: FileStore, sign_ins: SignIns
    ) -> None:
        self.servers = Servers(tools.mcp.servers, folder, file_store.keep, tools.web.allowed)
        self.sign_ins = sign_ins

    def find_memory(self, settings: MemorySettings) -> MemoryProvider | None:
        """Return the server used as additional memory, if one is set. Raises SettingsError."""
        known = {name: self.servers.asks_sign_in(name) for name in self.servers.names}
        return find_provider(settings, known, self.servers.ask_tool)

    def reach(self, circumstances: PolicyContext) -> ToolRegistry:
        """The servers as a turn's person reaches them."""
        sign_ins = self.sign_ins.of_person(circumstances.sender, circumstances.conversation)
        return PersonalServers(self.servers, sign_ins)

    def find_reader(self, registry: ToolRegistry) -> ResourceReader:
        """Return the reader of resources for the turn with this registry."""
        return registry if isinstance(registry, PersonalServers) else self.servers

    async def list_servers(self, where: Conversation, sender: Sender) -> tuple[ServerFacts, ...]:
        """Return the configured servers as the sender reaches them, after a short wait for their
        start."""
        return await self.servers.describe(self.sign_ins.of_person(lambda: sender, where))

    async def offer_sign_in(
        self, server: str, where: Conversation, sender: Sender
    ) -> SignInOffer | None:
        """A way to sign in at the server; None if people do not sign in there. StoreFailed."""
        if not self.servers.asks_sign_in(server):
            return None
        return await self.sign_ins.offer(sender, where, server)

    def sign_out(self, server: str, sender: Sender) -> bool:
        """Forget the sender's sign-in at the server. Return False if there is none."""
        known = self.sign_ins.read(sender.key, server) is not None
        self.sign_ins.keep(sender.key, server, None)
        self.servers.drop(sender.key, server)
        return known
