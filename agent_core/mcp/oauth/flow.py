"""A sign-in in two halves, perhaps of two processes: `begin` and `finish`.

A server's metadata may name any address. Every request to another place than the server's own
therefore goes through the guarded proxy, by https: private addresses are out of reach, unless the
operator lists the place (`WEB_ALLOWED_HOSTS`).
"""

import asyncio
import base64
import importlib
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from agent_core import ambient
from agent_core.mcp.oauth.grants import PendingSignIn, ServerGrant, SignInFailed
from agent_core.mcp.settings import McpServer
from agent_core.mcp.transport import limit_answers
from agent_core.tools.web.addresses import Target, Unreachable, read_url
from agent_core.tools.web.proxy import GuardedProxy

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger("turnkeeper.mcp")

SECONDS = 30.0
"""Time limit in seconds of one half of a sign-in."""
READ_SECONDS = 300.0
"""Time limit in seconds of the next piece of a stream that a server holds open."""
USER = "turnkeeper"
NO_REGISTRATION = (
    "it registers no gateway by itself: register it there by hand, and set client_id (and "
    "client_secret) of the server in MCP_SERVERS"
)


class SignInGuard:
    """The guarded way to places that servers name. `allowed`: places that may be anywhere, also by
    http."""

    def __init__(self, allowed: frozenset[str] = frozenset()) -> None:
        self._allowed = allowed
        self._secret = secrets.token_urlsafe(24)
        self._proxy = GuardedProxy(allowed, admit=self._admit)
        self._address = ""

    async def open(self) -> None:
        """Begin to listen."""
        self._address = await self._proxy.open()

    async def close(self) -> None:
        """End every connection."""
        await self._proxy.close()

    def _admit(self, credentials: str, target: Target) -> str:
        login = base64.b64encode(f"{USER}:{self._secret}".encode()).decode()
        if not secrets.compare_digest(credentials.encode(), f"Basic {login}".encode()):
            return "Not for others."
        plain = target.url.startswith("http:") and target.place not in self._allowed
        return "Sign-ins go by https only." if plain else ""

    def is_fit(self, url: str, server: McpServer) -> bool:
        """Return True if a person may be sent to this address."""
        try:
            target = read_url(url)
        except Unreachable:
            return False
        from agent_core.mcp.oauth.split_transport import find_origin

        own = find_origin(url) == find_origin(server.url)
        return target.url.startswith("https:") or own or target.place in self._allowed

    @asynccontextmanager
    async def connect(
        self, server: McpServer, auth: "httpx2.Auth | None" = None
    ) -> "AsyncIterator[httpx2.AsyncClient]":
        """Open a client for the server and the places it names, which follows no redirects
        elsewhere."""
        import httpx2

        from agent_core.mcp.oauth.split_transport import SplitTransport, find_origin

        proxy = httpx2.Proxy(self._address, auth=(USER, self._secret))
        async with httpx2.AsyncClient(
            auth=auth,
            headers=server.headers or None,
            timeout=httpx2.Timeout(SECONDS, read=READ_SECONDS),
            transport=SplitTransport(find_origin(server.url), proxy),
            trust_env=False,
        ) as http:
            yield limit_answers(http)


async def begin(
    server: McpServer, redirect: str, guard: SignInGuard, scope: str = ""
) -> PendingSignIn:
    """Find the authorization server, register there, and make the link. `scope`: requested besides
    what the server says. Raises SignInFailed."""
    await asyncio.to_thread(importlib.import_module, "agent_core.mcp.oauth.provider")
    from agent_core.mcp.oauth.provider import PersonalOAuth, SignInNeeded

    try:
        async with ambient.limit(SECONDS), guard.connect(server) as http:
            await _ask(http, server, PersonalOAuth(server, redirect), scope)
    except SignInNeeded as needed:
        pending = needed.pending
    except Exception as error:  # noqa: BLE001  # boundary: servers may answer anything
        raise _tell_failure(server, error) from None
    else:
        raise SignInFailed("the server asks for no sign-in")
    if not pending.url or not guard.is_fit(pending.url, server):
        raise SignInFailed("the server names no page to sign in at by https")
    return pending


async def _ask(
    http: "httpx2.AsyncClient", server: McpServer, provider: "httpx2.Auth", scope: str
) -> None:
    """Go the SDK's way from a request that the server refuses. Some refuse only later ones: then
    it is taken as refused."""
    import httpx2
    from mcp.client.auth.utils import (
        extract_resource_metadata_from_www_auth,
        extract_scope_from_www_auth,
        union_scopes,
    )

    request = http.build_request("POST", server.url, json={})
    flow = provider.async_auth_flow(request)
    outgoing = await anext(flow)
    try:
        while True:
            response = await http.send(outgoing, auth=None)
            await response.aread()
            if outgoing is request:
                named = extract_resource_metadata_from_www_auth(response)
                wanted = union_scopes(
                    union_scopes(server.scope, scope), extract_scope_from_www_auth(response)
                )
                said = {"resource_metadata": named, "scope": wanted}
                head = ", ".join(f'{name}="{one}"' for name, one in said.items() if one)
                asked = {"WWW-Authenticate": f"Bearer {head}"} if head else {}
                response = httpx2.Response(401, headers=asked, request=request)
            outgoing = await flow.asend(response)
    except StopAsyncIteration:
        return
    finally:
        await flow.aclose()


async def finish(
    server: McpServer, pending: PendingSignIn, code: str, issuer: str, guard: SignInGuard
) -> ServerGrant:
    """The tokens for the code that the authorization server sent the person back with. Raises
    SignInFailed."""
    await asyncio.to_thread(importlib.import_module, "agent_core.mcp.oauth.provider")
    from agent_core.mcp.oauth.provider import PersonalOAuth

    try:
        async with ambient.limit(SECONDS), guard.connect(server) as http:
            provider = PersonalOAuth(server, pending.redirect)
            return await provider.exchange(http, pending, code, issuer or None)
    except Exception as error:  # noqa: BLE001  # boundary: servers may answer anything
        raise _tell_failure(server, error) from None


def _tell_failure(server: McpServer, error: Exception) -> SignInFailed:
    """Name the kind of failure only: a server's own words may contain secrets."""
    from mcp.client.auth import OAuthRegistrationError

    kind = type(error).__name__
    log.warning("mcp_sign_in_failed", extra={"server": server.name, "kind": kind})
    return SignInFailed(NO_REGISTRATION if isinstance(error, OAuthRegistrationError) else kind)
