"""An MCP server of the real SDK that people sign in at, and an authorization server of its own.

    python oauth_server.py PORT AUTHORITY_PORT NOTE

The authorization server is the SDK's too, on its own port. What a test decides stands in files beside
NOTE: `NOTE.silent`: nothing says how long tokens are good for; `NOTE.revoked`: no token is taken; `NOTE.brief`: access tokens are good for a second; `NOTE.mute`:
no refresh; `NOTE.down`: no tokens for now; `NOTE.closed`: nobody registers; `NOTE.wider`: sign-ins need one scope more; `NOTE.plain`: no metadata
of either, and the server is its own authority, as before there was metadata; `NOTE.asks`: what was asked of both, a line each, with what it was signed with.
"""

import secrets
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

SCOPE, WIDER = "notes", "admin"


class Authority:
    """An authorization server whose page lets everybody in at once, and its tokens."""

    def __init__(self, note: Path) -> None:
        self.note = note
        self._clients: dict[str, OAuthClientInformationFull] = {}
        self._codes: dict[str, AuthorizationCode] = {}
        self._access: dict[str, AccessToken] = {}
        self._refresh: dict[str, RefreshToken] = {}

    def says(self, name: str) -> bool:
        return Path(f"{self.note}.{name}").exists()

    def lacks_scope(self, signed: str) -> bool:
        known = self._access.get(signed.removeprefix("Bearer "))
        return self.says("wider") and known is not None and WIDER not in known.scopes

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self._clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self._clients[client_info.client_id] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        code = f"CODE-{secrets.token_hex(16)}"
        self._codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [SCOPE],
            expires_at=time.time() + 300,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        if self.says("denies"):
            return construct_redirect_uri(
                str(params.redirect_uri), error="access_denied", state=params.state
            )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self._codes[authorization_code.code]
        return self._give(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return None if self.says("mute") else self._refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self._refresh[refresh_token.token]
        return self._give(client.client_id, scopes, None)

    async def load_access_token(self, token: str) -> AccessToken | None:
        known = self._access.get(token)
        over = known is None or (known.expires_at or 0) < time.time()
        return None if over or self.says("revoked") else known

    async def revoke_token(self, token: Any) -> None:
        self._access.pop(token.token, None)

    def _give(self, client: str, scopes: list[str], resource: str | None) -> OAuthToken:
        lasts = 1 if self.says("brief") else 3600
        access, refresh = f"ACCESS-{secrets.token_hex(8)}", f"REFRESH-{secrets.token_hex(8)}"
        until = int(time.time()) + lasts
        self._access[access] = AccessToken(
            token=access, client_id=client, scopes=scopes, expires_at=until, resource=resource
        )
        self._refresh[refresh] = RefreshToken(token=refresh, client_id=client, scopes=scopes)
        return OAuthToken(
            access_token=access,
            token_type="Bearer",
            expires_in=None if self.says("silent") else lasts,
            refresh_token=refresh,
            scope=" ".join(scopes),
        )


def build(note: Path, authority: Authority, url: str, issuer: str) -> MCPServer:
    settings = AuthSettings(
        issuer_url=AnyHttpUrl(issuer),
        resource_server_url=AnyHttpUrl(f"{url}/mcp"),
        required_scopes=[SCOPE],
        validate_token_resource=False,
    )
    server = MCPServer("signed", auth=settings, token_verifier=Verifier(authority))

    @server.tool(description="Publish a note under the person's own name.")
    def publish(title: str) -> str:
        with note.open("a") as file:
            file.write(f"publish {title}\n")
        return f"published {title}"

    return server


class Verifier:
    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    async def verify_token(self, token: str) -> AccessToken | None:
        return await self._authority.load_access_token(token)


class Noted:
    """Writes down what is asked, and with which credentials."""

    def __init__(
        self, app: ASGIApp, note: Path, name: str, refuse: Callable[[str], bool], plain: ASGIApp
    ) -> None:
        self._app, self._note, self._name, self._refuse = app, note, name, refuse
        self._plain = plain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            with Path(f"{self._note}.asks").open("a") as file:
                signed = headers.get(b"authorization", b"").decode()
                query = scope["query_string"].decode()
                file.write(f"{self._name} {scope['method']} {scope['path']}?{query} {signed}\n")
            if scope["path"] == "/register" and Path(f"{self._note}.closed").exists():
                await PlainTextResponse("by hand only", 403)(scope, receive, send)
                return
            if scope["path"] == "/token" and Path(f"{self._note}.down").exists():
                await PlainTextResponse("out of order", 503)(scope, receive, send)
                return
            if Path(f"{self._note}.plain").exists():
                if scope["path"].startswith("/.well-known/"):
                    await PlainTextResponse("not here", 404)(scope, receive, send)
                    return
                if scope["path"] in ("/register", "/authorize", "/token"):
                    await self._plain(scope, receive, send)
                    return
            if self._name == "server" and self._refuse(signed):
                asked = f'Bearer error="insufficient_scope", scope="{SCOPE} {WIDER}"'
                wider = PlainTextResponse("more", 403, {"WWW-Authenticate": asked})
                await wider(scope, receive, send)
                return
        await self._app(scope, receive, send)


class SignedServer:
    """Both servers, as one process of its own."""

    def __init__(self, note: Path) -> None:
        from tests.fakes.ports import free_port  # the program itself stands alone

        self.note, self.port, self.authority_port = note, free_port(), free_port()
        self.gateway_port = free_port()
        self._process: Any = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self.authority_port}"

    def set(self, name: str, *, on: bool = True) -> None:
        place = Path(f"{self.note}.{name}")
        place.touch() if on else place.unlink(missing_ok=True)

    def asks(self) -> list[str]:
        place = Path(f"{self.note}.asks")
        return place.read_text().splitlines() if place.exists() else []

    def effects(self) -> list[str]:
        return self.note.read_text().splitlines() if self.note.exists() else []

    def start(self) -> "SignedServer":
        from tests.fakes.forked import Forked

        self._process = Forked(run, self.port, self.authority_port, self.note)
        self._process.start(self.port, self.authority_port)
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None


def run(port: int, authority_port: int, note: Path) -> None:
    """Serve both until the process is ended."""
    anyio.run(serve, port, authority_port, note)


async def serve(port: int, authority_port: int, note: Path) -> None:
    url, issuer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{authority_port}"
    authority = Authority(note)
    routes = create_auth_routes(
        provider=authority,
        issuer_url=AnyHttpUrl(issuer),
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=[SCOPE, WIDER], default_scopes=[SCOPE]
        ),
        revocation_options=RevocationOptions(enabled=True),
    )
    own = Starlette(routes=routes)
    apps = (
        (build(note, authority, url, issuer).streamable_http_app(), port, "server"),
        (own, authority_port, "authority"),
    )
    async with anyio.create_task_group() as group:
        for app, at, name in apps:
            noted = Noted(app, note, name, authority.lacks_scope, own)
            config = uvicorn.Config(noted, host="127.0.0.1", port=at, log_level="error")
            group.start_soon(uvicorn.Server(config).serve)


if __name__ == "__main__":
    run(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
