"""The MCP servers: the setting MCP_SERVERS, and those given to the library."""

import re
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agent_core.config.declaration import Env
from agent_core.config.kinds import is_url
from agent_core.mcp.secrets import find_secrets
from agent_core.tools.tool_settings import MCP_SERVERS

_NAME = re.compile(r"[a-z0-9](?:_?[a-z0-9-]){0,23}")
_VARIABLE = re.compile(r"\$\{(\w+)\}")
MAX_MESSAGE = 16 << 20
"""Maximum bytes of one message of a server; after a larger one it is given up."""


class McpServer(BaseModel):
    """One server: a `command` to start, or a `url`.

    `tools`: patterns of tools to use. `offer`: those whose schemas are always shown to the model;
    others are found by a search. `allow`: those that only read, as the operator says: nobody is
    asked about them, and they may be run again. `timeout`: seconds for a call. `roots`: folders
    that the server is told it may work in. `auth`: each person signs in there (OAuth 2.1); `scope`,
    `client_id` and `client_secret`: where the server does not tell the scope, or registers nobody
    by itself. `issuer`: the authorization server at which that was done; no other gets them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default={}, repr=False)
    cwd: str = ""
    url: str = Field(default="", repr=False)
    transport: Literal["", "stdio", "http", "sse"] = ""
    headers: dict[str, str] = Field(default={}, repr=False)
    tools: tuple[str, ...] = ("*",)
    offer: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    timeout: float = Field(default=60.0, gt=0, le=3600)
    roots: tuple[str, ...] = ()
    auth: Literal["", "oauth"] = ""
    scope: str = ""
    client_id: str = ""
    client_secret: str = Field(default="", repr=False)
    issuer: str = ""

    @model_validator(mode="after")
    def _check_whole(self) -> "McpServer":
        if not _NAME.fullmatch(self.name):
            raise ValueError("name: small letters, digits and -, 24 at most")
        if bool(self.command) == bool(self.url):
            raise ValueError("write either command or url")
        if self.url and not is_url(self.url):
            raise ValueError("url: must be http or https")
        if self.transport and (self.transport == "stdio") != bool(self.command):
            raise ValueError("transport: stdio goes with command, http and sse with url")
        if not all(Path(one).is_absolute() for one in self.roots):
            raise ValueError("roots: must be folders with their whole path")
        self._check_auth()
        return self

    def _check_auth(self) -> None:
        if not self.auth:
            if self.scope or self.client_id or self.client_secret or self.issuer:
                raise ValueError("scope, client_id, client_secret and issuer go with auth")
            return
        if not self.url or self.transport == "sse":
            raise ValueError("auth: oauth goes with a url that is reached by streamable HTTP")
        if any(name.lower() == "authorization" for name in self.headers):
            raise ValueError("auth: oauth makes the Authorization header; take it out of headers")
        if self.client_secret and not self.client_id:
            raise ValueError("client_secret goes with client_id")
        if self.issuer and not is_url(self.issuer):
            raise ValueError("issuer: must be http or https")

    @property
    def secrets(self) -> tuple[str, ...]:
        """Secrets that neither a log nor a result may show."""
        given = (("client_secret", self.client_secret),) if self.client_secret else ()
        return find_secrets(chain(self.env.items(), self.headers.items(), given), self.url)


Given: TypeAlias = McpServer | Mapping[str, object]


class McpSettings(Struct, frozen=True, kw_only=True):
    """The servers, in their order."""

    servers: tuple[McpServer, ...] = ()

    @classmethod
    def read(cls, env: Env) -> "McpSettings":
        """The settings in `env`; raises SettingsError. `${NAME}` in `env`, `headers`, `args` and
        `url` is the variable NAME of `env`."""
        return cls(
            servers=parse_servers([_fill_variables(one, env) for one in MCP_SERVERS.read(env)])
        )


def parse_servers(given: Iterable[Given]) -> tuple[McpServer, ...]:
    """The servers that are written down; raises SettingsError, which shows no values."""
    servers: list[McpServer] = []
    for n, one in enumerate(given, 1):
        try:
            server = one if isinstance(one, McpServer) else McpServer.model_validate(dict(one))
        except ValidationError as error:
            said = "; ".join(
                _describe_error(item["loc"], item["msg"]) for item in error.errors()[:3]
            )
            raise MCP_SERVERS.error("", f"server {n}: {said}.") from None
        if any(other.name == server.name for other in servers):
            raise MCP_SERVERS.error("", f"server {n}: the name {server.name} is taken.")
        servers.append(server)
    return tuple(servers)


def _describe_error(where: tuple[int | str, ...], message: str) -> str:
    place = ".".join(map(str, where))
    return f"{place}: {message}" if place else message.removeprefix("Value error, ")


def _fill_variables(value: object, env: Env) -> dict[str, object]:
    filled = _fill(value, env)
    return filled if isinstance(filled, dict) else {}


def _fill(value: object, env: Env) -> object:
    match value:
        case str():
            return _VARIABLE.sub(lambda found: _variable(found[1], env), value)
        case list():
            return [_fill(one, env) for one in value]
        case dict():
            return {key: _fill(one, env) for key, one in value.items()}
        case _:
            return value


def _variable(name: str, env: Env) -> str:
    if name not in env:
        raise MCP_SERVERS.error("", f"${{{name}}} is not set.")
    return env[name]
