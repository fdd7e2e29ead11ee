"""The transport to a server with an address."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias, cast

from agent_core.mcp.deep_json import LevelCutter
from agent_core.mcp.settings import MAX_MESSAGE, McpServer

if TYPE_CHECKING:
    import httpx2
    from mcp.client import Transport
    from mcp.client._transport import TransportStreams

Connect: TypeAlias = Callable[[], "AbstractAsyncContextManager[httpx2.AsyncClient]"]
"""Makes the client that reaches a server."""


CONNECT_SECONDS = 30.0
READ_SECONDS = 300.0
"""For a part of an answer: a stream of events may be silent for long. As the SDK's own clients."""


def address(server: McpServer, connect: "Connect | None" = None) -> "Transport":
    """The streams to an address. `connect`: makes the HTTP client, where a person signs in."""
    headers = server.headers or None
    if connect is not None:
        return _http(server, connect)
    if server.transport == "sse":
        from mcp.client.sse import sse_client

        return sse_client(server.url, headers=headers, httpx_client_factory=_make_client)
    return _http(server, lambda: _make_client(headers))


def _make_client(
    headers: dict[str, str] | None = None,
    timeout: "httpx2.Timeout | None" = None,
    auth: "httpx2.Auth | None" = None,
) -> "httpx2.AsyncClient":
    """As `create_mcp_http_client` of the SDK, which reads the machine's authorities each time."""
    import httpx2

    from agent_core.models.trust import load_trust

    return limit_answers(
        httpx2.AsyncClient(
            headers=headers,
            timeout=timeout or httpx2.Timeout(CONNECT_SECONDS, read=READ_SECONDS),
            auth=auth,
            verify=load_trust(),
        )
    )


@asynccontextmanager
async def _http(server: McpServer, connect: "Connect") -> "AsyncIterator[TransportStreams]":
    from mcp.client.streamable_http import streamable_http_client

    async with (
        connect() as http,
        streamable_http_client(server.url, http_client=http) as streams,
    ):
        yield streams


def limit_answers(http: "httpx2.AsyncClient") -> "httpx2.AsyncClient":
    """Return `http`, which gives up an answer or event of more than MAX_MESSAGE bytes, or a
    compressed one, which could unpack to as much, and cuts JSON that is nested too deeply."""
    import httpx2

    class BoundedStream(httpx2.AsyncByteStream):
        """`inner`, until it is too much. Of `events` each one counts for itself."""

        def __init__(self, inner: httpx2.AsyncByteStream, events: bool, cut: bool) -> None:
            self._inner, self._events, self._cut = inner, events, cut

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size, tail, cutter = 0, b"", LevelCutter()
            async with aclosing(cast("AsyncGenerator[bytes]", aiter(self._inner))) as pieces:
                async for piece in pieces:
                    tail += piece
                    ends = tail.rfind(b"\n\n"), tail.rfind(b"\r\n\r\n"), tail.rfind(b"\r\r")
                    if self._events and max(ends) >= 0:
                        size = 0
                    size += len(piece)
                    tail = tail[-3:]
                    if size > MAX_MESSAGE:
                        raise httpx2.ReadError("more than 16 MB in one answer")
                    yield cutter.cut(piece) if self._cut else piece

        async def aclose(self) -> None:
            await self._inner.aclose()

    async def limit_answer(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.ReadError("packed, which was not asked for")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        kind = response.headers.get("content-type", "")
        events = "text/event-stream" in kind
        response.stream = BoundedStream(response.stream, events, events or "json" in kind)

    http.headers["Accept-Encoding"] = "identity"
    hooks = http.event_hooks
    http.event_hooks = hooks | {"response": [*hooks.get("response", ()), limit_answer]}
    return http
