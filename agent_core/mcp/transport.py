"""How a server is reached: a child process that dies with the gateway, or an address."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

from agent_core.mcp.settings import McpServer

if TYPE_CHECKING:
    import httpx2
    from mcp.client import Transport
    from mcp.client._transport import TransportStreams

Connect: TypeAlias = Callable[[], "AbstractAsyncContextManager[httpx2.AsyncClient]"]
"""Makes the client that reaches a server."""
MAX_KEPT_TEXT = 2_000
"""Bytes of a server's newest complaints."""
_WATCHED = '{ cat; exec >&-; sleep 2; kill -KILL 0; } 2>/dev/null | { "$0" "$@"; kill -KILL 0; }'
"""The command behind a `cat` that sees the end of our side. The gateway holds the other end of
standard input: however it dies, the command reads an end, and its group is dead 2 s later. If the
command ends, so does the `cat`, and with the last holder of its pipes we see that it is over."""


class Complaints(asyncio.Protocol):
    """A child's standard error: its end is kept; `closed` is called when nobody holds it."""

    def __init__(self, closed: Callable[[], None]) -> None:
        self._closed = closed
        self._tail = bytearray()

    def data_received(self, data: bytes) -> None:
        self._tail += data
        del self._tail[:-MAX_KEPT_TEXT]

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed()

    @property
    def last(self) -> str:
        """Its last line."""
        lines = self._tail.decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""


@asynccontextmanager
async def child(server: McpServer, complaints: Complaints) -> "AsyncIterator[TransportStreams]":
    """The streams to a child process."""
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    reading, writing = os.pipe()
    pipe = os.fdopen(reading, "rb")
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: complaints, pipe)
    parameters = StdioServerParameters(
        command="/bin/sh",
        args=["-c", _WATCHED, server.command, *server.args],
        env=server.env,
        cwd=server.cwd or None,
        encoding_error_handler="replace",  # else one wrong byte ends the reader, and nobody is told
    )
    async with AsyncExitStack() as stack:
        stack.callback(transport.close)
        with os.fdopen(writing, "w") as errors:
            streams = await stack.enter_async_context(stdio_client(parameters, errlog=errors))
        # from here on the child alone holds that end
        yield streams


def address(server: McpServer, connect: "Connect | None" = None) -> "Transport":
    """The streams to an address. `connect`: makes the HTTP client, where a person signs in."""
    if connect is not None:
        return _http(server, connect)
    if server.transport == "sse":
        from mcp.client.sse import sse_client

        return sse_client(server.url, headers=server.headers or None)
    from mcp.shared._httpx_utils import create_mcp_http_client

    return _http(server, lambda: create_mcp_http_client(headers=server.headers or None))


@asynccontextmanager
async def _http(server: McpServer, connect: "Connect") -> "AsyncIterator[TransportStreams]":
    from mcp.client.streamable_http import streamable_http_client

    async with (
        connect() as http,
        streamable_http_client(server.url, http_client=http) as streams,
    ):
        yield streams
