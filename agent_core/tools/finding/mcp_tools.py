"""Tools of servers, which come and go: known by name, and recorded.

A turn must meet the same tool again after a restart, when its server may not be connected yet. So
the definition of a foreign tool that is called is journaled; only its call is live.
"""

import hashlib
from collections.abc import Iterable
from typing import Protocol

import msgspec
from msgspec import Struct

from agent_core.errors import ToolFailed
from agent_core.messages import ToolCall, ToolOutput
from agent_core.models.port import ToolSpec
from agent_core.scope import Scope
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.finding.schema import Given
from agent_core.tools.finding.toolsets import Reach, is_in_all

NAME_SEPARATOR = "__"
"""Stands between the names of server and tool in a foreign tool's name, and in no other's."""
_VALUES = frozenset({"const", "default", "enum", "examples"})
"""Keywords of a schema whose lists are values, and mean what their order says."""
GONE = "{name} is not available now: {why}. Go on without it, or say what you would need."


class Definition(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The definition of a foreign tool. `name` is ours, `tool` its server's. `ours`: the server has
    no such tool; it stands for another ability of servers. `traits`: the digest of what the server
    says of it besides."""

    name: str
    server: str
    tool: str
    description: str
    parameters: dict[str, object]
    ours: bool = False
    traits: str = ""

    @property
    def version(self) -> str:
        """The digest of its server's description: an approval of the call approves this."""
        return digest_meaning(msgspec.to_builtins(self))

    @property
    def spec(self) -> ToolSpec:
        """The specification for the model."""
        return ToolSpec(name=self.name, description=self.description, parameters=self.parameters)


def digest_meaning(value: object) -> str:
    """Return the digest of JSON with a schema in it: the same in any order that means nothing."""
    return hashlib.sha256(msgspec.json.encode(_sort_sets(value), order="sorted")).hexdigest()


def _sort_sets(value: object) -> object:
    """Sort the lists of required names and of types; servers may make them from sets."""
    match value:
        case dict():
            return {
                key: one
                if key in _VALUES
                else sorted(one, key=str)
                if key in ("required", "type") and isinstance(one, list)
                else _sort_sets(one)
                for key, one in value.items()
            }
        case list():
            return [_sort_sets(one) for one in value]
        case _:
            return value


class ToolRegistry(Protocol):
    """The registry of foreign tools."""

    async def seek(self, names: Iterable[str]) -> tuple[Definition, ...]:
        """Return those of `names` that exist; a connected server is asked for an unknown one."""

    async def list_known(self, reach: Reach) -> tuple[Definition, ...]:
        """Return all tools within `reach`, after a short wait for servers never met."""

    def make(self, definition: Definition) -> Tool:
        """The tool; its call fails where the server is not there."""

    def refresh(self) -> None:
        """Ask the servers anew which tools they have, soon."""


class NoRegistry:
    """The registry without servers."""

    async def seek(self, names: Iterable[str]) -> tuple[Definition, ...]:
        """Return ()."""
        return ()

    async def list_known(self, reach: Reach) -> tuple[Definition, ...]:
        """Return ()."""
        return ()

    def make(self, definition: Definition) -> Tool:
        """A tool that was there once, when a turn began."""
        why = f"the server {definition.server} is not set up any more"

        async def call(arguments: object, context: ToolContext) -> str | ToolOutput:
            raise ToolFailed(GONE.format(name=definition.name, why=why))

        return foreign_tool(definition, call)

    def refresh(self) -> None:
        """Do nothing."""


def foreign_tool(definition: Definition, call: object) -> Tool:
    """Make a tool from its server's definition alone: it is asked about, and never run twice."""
    return Tool(
        name=definition.name,
        description=definition.description,
        arguments=Given,
        schema=definition.parameters,
        repetition="effect",
        access="network",
        bind=lambda arguments, workspace: definition.version,
        call=call,  # type: ignore[arg-type]  # takes any arguments
    )


async def look_up(
    scope: Scope, registry: ToolRegistry, reach: Reach | None, calls: Iterable[ToolCall]
) -> dict[str, Tool]:
    """The foreign tools that `calls` name, as they were known when they were called first."""
    names = [call.name for call in calls if NAME_SEPARATOR in call.name]
    if reach is None or not any(is_in_all(name, reach) for name in names):
        return {}
    found = await scope.once(
        "foreign",
        lambda: registry.seek(n for n in names if is_in_all(n, reach)),
        kind=tuple[Definition, ...],
    )
    return {one.name: registry.make(one) for one in found}
