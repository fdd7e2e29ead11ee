"""The SDK's OAuth client for one person at one server: finds the authorization server, registers,
makes PKCE, refreshes; its state is stored and survives a restart.

The SDK waits in memory for the person who signs in. Here nobody waits: the state for the rest of
the sign-in is returned with the link (`SignInNeeded`), and `exchange` uses it. Imports the SDK.
"""

import logging
import re
from collections.abc import AsyncGenerator, Callable
from urllib.parse import unquote_plus, urlencode, urljoin, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.oauth2 import PKCEParameters
from mcp.client.auth.utils import issuers_match, validate_authorization_response_iss
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from mcp_types import LATEST_PROTOCOL_VERSION
from pydantic import BaseModel
from typing_extensions import TypeVar

from agent_core import ambient
from agent_core.mcp.oauth.grants import Parties, PendingSignIn, ServerGrant
from agent_core.mcp.settings import McpServer

Keep = Callable[[ServerGrant], None]
Doc = TypeVar("Doc", bound=BaseModel)
CLIENT_NAME = "Turnkeeper"
MAX_TOKEN = 20_000
"""Characters of a token, and of a scope; each request carries one."""
_OURS = frozenset(
    ("response_type", "response_mode", "client_id", "redirect_uri", "scope", "state", "nonce")
) | {"code_challenge", "code_challenge_method", "resource", "prompt", "request", "request_uri"}
"""Parameters of a sign-in's page that only the gateway sets: of two some servers take the first."""
# the SDK logs whole answers of authorization servers, with their tokens
logging.getLogger(OAuthClientProvider.__module__).setLevel(logging.CRITICAL)


class SignInNeeded(OAuthFlowError):
    """A person has to sign in, with the state for that."""

    def __init__(self, pending: PendingSignIn) -> None:
        super().__init__("a person has to sign in")
        self.pending = pending


class PersonalOAuth(OAuthClientProvider):
    """Signs a person's requests with their tokens. Raises SignInNeeded when these are refused;
    `keep` receives refreshed tokens, `end` the scope that was requested then."""

    def __init__(
        self,
        server: McpServer,
        redirect: str = "",
        grant: ServerGrant | None = None,
        keep: Keep | None = None,
        end: Callable[[str], None] | None = None,
    ) -> None:
        self._redirect, self._grant, self._keep = redirect, grant, keep
        self._end = end
        metadata = OAuthClientMetadata.model_validate(
            {
                "client_name": CLIENT_NAME,
                "redirect_uris": [redirect or "http://127.0.0.1/"],
                "grant_types": ["authorization_code", "refresh_token"],
                "response_types": ["code"],
                "scope": server.scope or None,
            }
        )
        self._registered, self._issuer = _read_client(server, metadata), server.issuer
        super().__init__(server.url, metadata, self)

    # ---- what is kept: the SDK's TokenStorage -------------------------------------------------

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens that were kept."""
        grant = self._grant
        if grant is None:
            return None
        return OAuthToken(
            access_token=grant.access,
            token_type="Bearer",
            refresh_token=grant.refresh or None,
            scope=grant.scope or None,
        )

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep new tokens, with the moment at which they expire. Raises OAuthFlowError for those
        that no header can hold."""
        given = (tokens.access_token, tokens.refresh_token or "", tokens.scope or "")
        if not re.fullmatch(r"[!-~]+", given[0]) or max(map(len, given)) > MAX_TOKEN:
            raise OAuthFlowError("the tokens are none that can be sent")
        expires = ambient.now() + tokens.expires_in if tokens.expires_in else 0.0
        self._grant = ServerGrant(
            access=tokens.access_token,
            refresh=tokens.refresh_token or "",
            scope=tokens.scope or "",
            expires=expires,
            parties=self._describe_parties(),
        )
        if self._keep is not None:
            self._keep(self._grant)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return our registration: the operator's, otherwise the stored one."""
        kept = self._grant.parties.client if self._grant is not None else ""
        return self._registered or _parse(OAuthClientInformationFull, kept)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store our registration as part of the sign-in's state."""

    # ---- the flow --------------------------------------------------------------------------------

    async def _initialize(self) -> None:
        """Initialize like the SDK, plus the tokens' expiry and the authorization server's
        addresses, without which a refresh goes to the wrong one."""
        await super()._initialize()
        if self._grant is not None:
            self._restore(self._grant.parties)
            self.context.token_expiry_time = self._grant.expires or None

    def _restore(self, parties: Parties) -> None:
        self.context.client_info = self._registered or _parse(
            OAuthClientInformationFull, parties.client
        )
        self.context.oauth_metadata = _parse(OAuthMetadata, parties.server)
        resource = _parse(ProtectedResourceMetadata, parties.resource)
        self.context.protected_resource_metadata = resource
        if resource is not None and resource.authorization_servers:
            self.context.auth_server_url = str(resource.authorization_servers[0])

    async def _auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """The SDK's flow. Tokens that are refused are refreshed first: servers need not say how
        long they are valid, and clocks differ."""
        flow = super()._auth_flow(request)
        refreshed = False
        try:
            outgoing = await anext(flow)
            while True:
                response = yield outgoing
                refused = outgoing is request and response.status_code == 401
                if refused and not refreshed and self.context.can_refresh_token():
                    refreshed = True
                    await flow.aclose()
                    self._expire(request)
                    flow = super()._auth_flow(request)
                    outgoing = await anext(flow)
                else:
                    outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    def _expire(self, refused: httpx2.Request) -> None:
        """Take the tokens for expired, unless another request has got new ones meanwhile."""
        tokens = self.context.current_tokens
        if tokens and refused.headers.get("Authorization") == f"Bearer {tokens.access_token}":
            self.context.token_expiry_time = 1.0

    async def _handle_refresh_response(self, response: httpx2.Response) -> bool:
        if response.status_code >= 500 or response.status_code == 429:
            raise OAuthFlowError("the authorization server fails for now")  # the tokens are kept
        return await super()._handle_refresh_response(response)

    def _select_authorization_server(self, advertised: list[str]) -> str:
        """Select the first that the server advertises, or the one of the settings."""
        return next(filter(self._may_serve, advertised), advertised[0])

    def _may_serve(self, issuer: str) -> bool:
        return not self._issuer or issuers_match(issuer, self._issuer)

    async def _perform_authorization_code_grant(self) -> tuple[str, str]:
        """Hand out the link instead of waiting for who follows it."""
        context, metadata = self.context, self.context.oauth_metadata
        if not self._may_serve(self._expected_issuer()):
            raise OAuthFlowError("the authorization server is another one than in the settings")
        if not self._redirect or context.client_info is None:
            if self._end is not None:
                self._end(context.client_metadata.scope or "")
            raise SignInNeeded(PendingSignIn(url="", verifier="", redirect="", parties=_NOBODY))
        methods = metadata.code_challenge_methods_supported if metadata is not None else None
        if "S256" not in (methods or ("S256",)):
            raise OAuthFlowError("the authorization server knows no PKCE by S256")
        pkce = PKCEParameters.generate()
        asked = {
            "response_type": "code",
            "client_id": context.client_info.client_id,
            "redirect_uri": self._redirect,
            "code_challenge": pkce.code_challenge,
            "code_challenge_method": "S256",
            "resource": context.get_resource_url(),
        }
        scope = context.client_metadata.scope or ""
        if scope:
            asked["scope"] = scope
        if "offline_access" in scope.split():
            asked["prompt"] = "consent"
        base = self._find_sign_in_page()
        if "#" in base or _OURS & _list_parameters(base):
            raise OAuthFlowError("the page to sign in at sets what is the gateway's to set")
        url = f"{base}{'&' if urlsplit(base).query else '?'}{urlencode(asked)}"
        raise SignInNeeded(
            PendingSignIn(
                url=url,
                verifier=pkce.code_verifier,
                redirect=self._redirect,
                parties=self._describe_parties(),
                scope=scope,
            )
        )

    def _find_sign_in_page(self) -> str:
        """Return the authorization server's page; of a server without metadata its own, where the
        protocol's version of 2025-03-26 put it."""
        context = self.context
        if context.oauth_metadata is not None:
            return str(context.oauth_metadata.authorization_endpoint)
        return urljoin(context.get_authorization_base_url(context.server_url), "/authorize")

    async def exchange(
        self, http: httpx2.AsyncClient, pending: PendingSignIn, code: str, issuer: str | None
    ) -> ServerGrant:
        """Exchange the code of a pending sign-in for tokens. Raises what the SDK raises."""
        self._restore(pending.parties)
        self.context.client_metadata.scope = pending.scope or None
        self.context.protocol_version = LATEST_PROTOCOL_VERSION
        validate_authorization_response_iss(issuer, self.context.oauth_metadata)
        request = await self._exchange_token_authorization_code(code, pending.verifier)
        response = await http.send(request, auth=None)
        await self._handle_token_response(response)
        assert self._grant is not None
        return self._grant

    def _describe_parties(self) -> Parties:
        context = self.context
        client, server, resource = (
            one.model_dump_json(exclude_none=True) if one is not None else ""
            for one in (
                context.client_info,
                context.oauth_metadata,
                context.protected_resource_metadata,
            )
        )
        return Parties(client=client, server=server, resource=resource)


_NOBODY = Parties(client="")


def _list_parameters(url: str) -> frozenset[str]:
    """The names of a URL's parameters, whichever separators its server takes."""
    pairs = re.split("[&;]", urlsplit(url).query)
    return frozenset(unquote_plus(pair.partition("=")[0]).lower() for pair in pairs)


def _parse(kind: type[Doc], text: str) -> Doc | None:
    return kind.model_validate_json(text) if text else None


def _read_client(
    server: McpServer, metadata: OAuthClientMetadata
) -> OAuthClientInformationFull | None:
    """The registration that the operator made by hand, if they did."""
    if not server.client_id:
        return None
    return OAuthClientInformationFull.model_validate(
        {
            **metadata.model_dump(mode="json", exclude_none=True),
            "client_id": server.client_id,
            "client_secret": server.client_secret or None,
            "token_endpoint_auth_method": "client_secret_post" if server.client_secret else "none",
        }
    )
