"""One person's sign-in at one server, as their connection uses it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from agent_core.mcp.oauth.flow import SignInGuard
from agent_core.mcp.oauth.grants import ServerGrant, SignInPort
from agent_core.mcp.settings import McpServer

if TYPE_CHECKING:
    import httpx2


class ServerAccount:
    """Signs requests to the server. Refreshed tokens are stored in `sign_ins`."""

    def __init__(self, grant: ServerGrant, sign_ins: SignInPort, guard: SignInGuard) -> None:
        self._grant, self._sign_ins, self._guard = grant, sign_ins, guard
        self.is_over, self.wanted_scope = False, ""
        """Set when the server refused the tokens and no refresh gave new ones; and the scope that
        it asked for."""

    @asynccontextmanager
    async def connect(self, server: McpServer) -> "AsyncIterator[httpx2.AsyncClient]":
        """The client of a connection."""
        from agent_core.mcp.oauth.provider import PersonalOAuth

        def keep(grant: ServerGrant) -> None:
            self._grant = grant
            self._sign_ins.keep(server.name, grant)

        def end(scope: str) -> None:
            self.is_over, self.wanted_scope = True, scope

        auth = PersonalOAuth(server, "", self._grant, keep, end)
        async with self._guard.connect(server, auth) as http:
            yield http
