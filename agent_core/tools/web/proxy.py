"""The guarded proxy: the only way out of the browser, and of sandboxes.

Its users resolve no names and open no connections of their own, but ask here. A name is resolved
once, and the connection goes to that very address if it is a public one. So no redirect, frame,
script, socket or changing DNS answer gets past the guard.
"""

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeAlias
from urllib.parse import urlsplit

from agent_core import ambient
from agent_core.tools.web.addresses import Target, Unreachable, is_public, read_url
from agent_core.tools.web.connections import HEAD, Connections

PIECE = 1 << 16
MAX_CARRIED = 300_000_000
"""Maximum bytes of one connection in one direction: a download is on the disk first."""
SECONDS = 20.0
"""Seconds for a head, and for a connection."""
MAX_NOTED = 64
MAX_INTERIM = 100
"""Interim answers (1xx) before the final one."""
_ASKS = "Who asks? The environment of a command names the proxy with its pass."
_HOP = (b"connection:", b"keep-alive:", b"proxy-", b"te:", b"trailer:")

Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]
"""The addresses of a host."""


Admit: TypeAlias = Callable[[str, Target], str]
"""Returns why a request with these credentials (`Proxy-Authorization`) may not go there, "" if it
may."""


Side: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Reach: TypeAlias = Callable[[Target], Awaitable[Side]]
"""A connection to where a request leads, by another way than the network. Barred."""


class Barred(Exception):
    """The guard lets no connection be made; the text says why."""


class GuardedProxy:
    """Listens on loopback between `open` and `close`, or serves connections handed to `take`.
    `allowed`: places (`host:port`) that the operator opened and that may be anywhere. With `admit`
    each request needs credentials, and its permission; with `reach` nothing is reached in another
    way."""

    def __init__(
        self,
        allowed: frozenset[str],
        resolve: Resolve | None = None,
        admit: Admit | None = None,
        reach: Reach | None = None,
    ) -> None:
        self._allowed = allowed
        self._admit, self._reach = admit, reach
        self._resolve = resolve or _resolve
        self._connections = Connections(self._answer)
        self._barred: deque[tuple[str, str]] = deque(maxlen=MAX_NOTED)
        self._admitted: dict[asyncio.Task[object], str] = {}
        """Connections being served, with the credentials that admitted them."""

    async def open(self) -> str:
        """Begin to listen; the proxy's address."""
        return f"http://127.0.0.1:{await self._connections.listen()}"

    async def close(self) -> None:
        """End every connection."""
        await self._connections.close()

    def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection that came another way."""
        self._connections.take(reader, writer)

    def end_admitted(self, is_over: Callable[[str], bool]) -> None:
        """End the connections whose credentials are over."""
        for task, credentials in self._admitted.items():
            if is_over(credentials):
                task.cancel()

    def why_barred(self, url: str) -> str:
        """Return why `url` was not reached, "" if it was not barred."""
        try:
            place = read_url(url).place
        except Unreachable as error:
            return str(error)
        return next((why for known, why in reversed(self._barred) if known == place), "")

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with ambient.limit(SECONDS):
            first = await reader.readexactly(1)
            if not first.isupper():
                return  # not HTTP, such as SOCKS or TLS: its end would never come
            head = first + await reader.readuntil(b"\r\n\r\n")
        task, credentials = asyncio.current_task(), _read_credentials(head)
        assert task is not None
        self._admitted[task] = credentials
        try:
            await self._serve(reader, writer, head, credentials)
        finally:
            del self._admitted[task]

    async def _serve(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        head: bytes,
        credentials: str,
    ) -> None:
        method, _, rest = head.partition(b" ")
        text = rest.partition(b" ")[0].decode("latin-1")
        tunnel = method == b"CONNECT"
        try:
            target = read_url(f"https://{text}" if tunnel else text)
            if self._admit is not None:
                if not credentials:  # some clients send theirs only when asked
                    return await _refuse(writer, "407 Proxy Authentication Required", _ASKS)
                if why := self._admit(credentials, target):
                    raise Barred(why)
            up, out = await self._connect(target)
        except (Barred, Unreachable) as error:
            return await _refuse(writer, "403 Forbidden", str(error))
        except (OSError, TimeoutError):
            return await _refuse(writer, "502 Bad Gateway", "The host cannot be reached.")
        try:
            if tunnel:
                writer.write(b"HTTP/1.1 200 Connection Established\r\n\r\n")
            else:
                out.write(_request(method, target, head))
            rewrite = None if tunnel else _close_answer
            if not await join_streams((reader, writer), (up, out), rewrite):
                await _refuse(writer, "502 Bad Gateway", "The host sent no answer in HTTP.")
        finally:
            out.close()

    async def _connect(self, target: Target) -> Side:
        """Connect to the first address of the host that may be reached."""
        if self._reach is not None:
            try:
                return await self._reach(target)
            except Barred as error:
                self._barred.append((target.place, str(error)))
                raise
        free = target.place in self._allowed
        found = await self._resolve(target.host, target.port)
        usable = [address for address in found if free or is_public(address)]
        if not usable:
            why = "It leads to an address that is not public."
            self._barred.append((target.place, why))
            raise Barred(why)
        failed: OSError | TimeoutError = OSError("no address")
        for address in usable:
            try:
                async with ambient.limit(SECONDS):
                    return await asyncio.open_connection(address, target.port, limit=HEAD)
            except (OSError, TimeoutError) as error:
                failed = error
        raise failed


async def _resolve(host: str, port: int) -> list[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


def _request(method: bytes, target: Target, head: bytes) -> bytes:
    """The head as the server itself wants it: its connection serves this request and no other, for
    the host that was admitted and none that the client names besides."""
    parts = urlsplit(target.url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    first = b"%s %s HTTP/1.1" % (method, path.encode("latin-1", "replace"))
    named = parts.netloc.rpartition("@")[2].encode("latin-1", "replace")
    lines = (line for line in head.split(b"\r\n")[1:] if not line.lower().startswith(b"host:"))
    return _close_after(first, b"\r\n".join((b"", b"Host: " + named, *lines)))


def _close_after(first: bytes, head: bytes) -> bytes:
    lines = head.split(b"\r\n")[1:-2]
    kept = [line for line in lines if not line.lower().startswith(_HOP)]
    return b"\r\n".join((first, *kept, b"Connection: close", b"", b""))


def _read_credentials(head: bytes) -> str:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"proxy-authorization":
            return value.strip().decode("latin-1")
    return ""


async def _refuse(writer: asyncio.StreamWriter, status: str, why: str) -> None:
    body = why.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    if status.startswith("407"):
        head += 'Proxy-Authenticate: Basic realm="sandbox"\r\n'
    writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
    await writer.drain()


async def join_streams(
    near: Side,
    far: Side,
    rewrite: Callable[[bytes], bytes] | None = None,
    quiet: float | None = None,
) -> bool:
    """Forward the data of both sides until one of them ends; `rewrite` changes the answer's head.
    Return False if that did not come. TimeoutError if no data came for `quiet` seconds."""
    loop, answered = asyncio.get_running_loop(), rewrite is None

    def note_data() -> None:
        if quiet is not None:
            limit.reschedule(loop.time() + quiet)

    async def carry_back() -> None:
        nonlocal answered
        answered = answered or await _heads(far[0], near[1], rewrite or _close_answer)
        if answered:
            await _carry(far[0], near[1], note_data)

    async with ambient.limit(quiet) as limit, asyncio.TaskGroup() as group:
        ways = {
            group.create_task(_ignore_failure(_carry(near[0], far[1], note_data))),
            group.create_task(_ignore_failure(carry_back())),
        }
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
    return answered


async def _heads(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rewrite: Callable[[bytes], bytes]
) -> bool:
    """Forward the answer's head, and interim ones before it; False if too many of them came."""
    for _ in range(MAX_INTERIM):
        head = await reader.readuntil(b"\r\n\r\n")
        first = head.partition(b"\r\n")[0]
        if first[9:10] != b"1" or first[9:12] == b"101":
            writer.write(rewrite(head))
            return True
        writer.write(head)
        await writer.drain()
    return False


def _close_answer(head: bytes) -> bytes:
    return _close_after(head.partition(b"\r\n")[0], head)


async def _carry(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, note_data: Callable[[], None]
) -> None:
    left = MAX_CARRIED
    while left > 0 and (data := await reader.read(PIECE)):
        left -= len(data)
        note_data()
        writer.write(data)
        await writer.drain()


async def _ignore_failure(work: Awaitable[None]) -> None:
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        await work
