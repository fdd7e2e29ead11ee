"""A server's resources: listed and read by two tools that every server with resources gets."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from agent_core.mcp.calls import RunningCall
from agent_core.mcp.listings import read_pages
from agent_core.tools.finding.mcp_tools import NAME_SEPARATOR, Definition

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult

READ, LIST = "read_resource", "list_resources"
MAX_LISTED = 100
MAX_LINE = 300
"""Characters of one resource in a list."""
Request: TypeAlias = Callable[["Client", RunningCall], Awaitable["CallToolResult"]]
"""A request to a server, and its answer in the shape of a tool's."""
_PARAMETERS: dict[str, dict[str, object]] = {
    READ: {
        "type": "object",
        "properties": {"uri": {"type": "string", "minLength": 1, "maxLength": 2_000}},
        "required": ["uri"],
        "additionalProperties": False,
    },
    LIST: {"type": "object", "properties": {}, "additionalProperties": False},
}
_DESCRIPTIONS = {
    READ: "Read a resource of {server} by its URI.",
    LIST: "List the resources of {server}, and the patterns of their URIs.",
}


def define_resource_tools(server: str) -> tuple[Definition, ...]:
    """Define the two tools like a server's own."""
    return tuple(
        Definition(
            name=f"{server}{NAME_SEPARATOR}{name}",
            server=server,
            tool=name,
            description=_DESCRIPTIONS[name].format(server=server),
            parameters=_PARAMETERS[name],
            ours=True,
        )
        for name in (READ, LIST)
    )


async def has_resources(client: "Client") -> bool:
    """Return True if it has resources, or templates of them."""
    capabilities = client.server_capabilities
    if capabilities is None or capabilities.resources is None:
        return False
    if (await client.list_resources()).resources:
        return True
    return bool((await client.list_resource_templates()).resource_templates)


def make_request(tool: str, arguments: dict[str, object]) -> Request:
    """Make the request for a call of one of the two tools."""
    uri = str(arguments.get("uri", ""))
    return (lambda client, call: read(client, uri)) if tool == READ else _list


async def read(client: "Client", uri: str) -> "CallToolResult":
    """The contents of a resource."""
    from mcp_types import CallToolResult, EmbeddedResource

    result = await client.read_resource(uri)
    return CallToolResult(content=[EmbeddedResource(resource=one) for one in result.contents])


async def _list(client: "Client", call: RunningCall) -> "CallToolResult":
    from mcp_types import CallToolResult, TextContent

    resources = await read_pages(lambda cursor: client.list_resources(cursor=cursor))
    templates = await read_pages(lambda cursor: client.list_resource_templates(cursor=cursor))
    listed = (one for page in resources for one in page.resources)
    lines = [_describe(one.uri, one.name, one.description) for one in listed]
    patterns = (one for page in templates for one in page.resource_templates)
    lines += [_describe(one.uri_template, one.name, one.description) for one in patterns]
    lines = list(dict.fromkeys(lines))
    more = [f"(and {len(lines) - MAX_LISTED} more)"] if len(lines) > MAX_LISTED else []
    text = "\n".join((*lines[:MAX_LISTED], *more))
    return CallToolResult(content=[TextContent(text=text or "(it has none)")])


def _describe(uri: str, name: str, about: str | None) -> str:
    return " ".join(f"{uri}: {name}. {about or ''}".split())[:MAX_LINE]
