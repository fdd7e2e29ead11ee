"""An HTTP proxy on loopback, as companies have one: it knows hosts that nobody else knows."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit


class ForwardProxy:
    """`hosts`: the ports on loopback behind names; `asked`: the hosts that were asked for."""

    def __init__(self) -> None:
        self.hosts: dict[str, int] = {}
        self.asked: list[str] = []
        self.url = ""

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        with contextlib.closing(writer), contextlib.suppress(OSError, asyncio.IncompleteReadError):
            line, _, rest = (await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")
            method, target, version = line.decode().split()
            tunnel = method == "CONNECT"
            host = urlsplit(f"//{target}" if tunnel else target).hostname or ""
            self.asked.append(host)
            if host not in self.hosts:
                writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
                return
            there, back = await asyncio.open_connection("127.0.0.1", self.hosts[host])
            with contextlib.closing(back):
                if tunnel:
                    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                else:
                    path = target.partition("://")[2].partition("/")[2]
                    back.write(f"{method} /{path} {version}\r\n".encode() + _end_after_one(rest))
                async with asyncio.TaskGroup() as group:
                    group.create_task(_pipe(reader, back))
                    group.create_task(_pipe(there, writer))


def _end_after_one(head: bytes) -> bytes:
    """The rest of a head for one answer a connection: the next request may be for another host."""
    if b"upgrade: websocket" in head.lower():
        return head
    kept = (line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:"))
    return b"Connection: close\r\n" + b"\r\n".join(kept)


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


@contextlib.asynccontextmanager
async def proxying() -> AsyncIterator[ForwardProxy]:
    """A proxy that listens; what it still forwards at the end is cut off."""
    made = ForwardProxy()
    running: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(made.take(reader, writer))
        running.add(task)
        task.add_done_callback(running.discard)

    server = await asyncio.start_server(begin, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
