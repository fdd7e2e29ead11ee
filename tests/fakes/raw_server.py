"""A provider on loopback that answers with exactly the given bytes, whatever it is asked."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

Answer = Callable[[int], bytes | list[bytes]]
"""The bytes of the nth answer, from 1 on: head and body, in pieces that arrive one by one."""


def head(kind: str = "text/event-stream", status: str = "200 OK", *more: str) -> bytes:
    """The head of an answer that ends with its connection."""
    lines = (f"HTTP/1.1 {status}", f"Content-Type: {kind}", "Connection: close", *more, "", "")
    return "\r\n".join(lines).encode()


class RawServer:
    """`asked` counts the requests; `bodies` has what they sent."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.asked = 0
        self.bodies: list[bytes] = []

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            asked = (await reader.readuntil(b"\r\n\r\n")).lower()
            size = asked.partition(b"content-length:")[2].split(b"\r\n")[0]
            body = await reader.readexactly(int(size or 0))
            if asked.startswith(b"post"):
                self.bodies.append(body)
                self.asked += 1
                given = self._answer(self.asked)
                for piece in [given] if isinstance(given, bytes) else given:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
        writer.close()


@contextlib.asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[tuple[str, RawServer]]:
    """The address of such a server, and the server."""
    made = RawServer(answer)
    server = await asyncio.start_server(made.take, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", made
    finally:
        server.close()
