"""The HTTP API of a Docker engine over its Unix socket: the few calls that sandboxes need."""

import asyncio
from collections.abc import Mapping
from typing import TypeAlias, TypeVar, cast
from urllib.parse import quote

import aiohttp
import msgspec
from msgspec import Struct

from agent_core import ambient

SCHEME = "unix://"
SECONDS_TO_ANSWER = 30.0
MAX_HEAD = 65_536
"""Bytes of an answer's head."""
MAX_SAID = 4_000
"""Bytes kept of a supervisor's error output."""
_STDOUT, _STDERR = 1, 2
_FRAME = 8
"""The header of each piece of a stream: its number, three zero bytes, four bytes of length."""
JsonObject: TypeAlias = Mapping[str, object]
T = TypeVar("T")


class EngineFailed(Exception):
    """The engine did not do it; `status` as in HTTP, 0 without an answer."""

    def __init__(self, words: str, status: int = 0) -> None:
        super().__init__(words)
        self.status = status


class _Refusal(Struct):
    message: str = ""


class DockerEngine:
    """The engine at a Unix socket; nothing is kept open between two calls. EngineFailed."""

    def __init__(self, socket: str) -> None:
        self.socket = socket

    async def ask(self, path: str, kind: type[T], query: Mapping[str, str] | None = None) -> T:
        """Return the engine's answer at `path`."""
        body = await self._call("GET", path, query=query)
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.DecodeError as error:
            raise EngineFailed(f"it answers what no engine says ({error})") from None

    async def create(self, name: str, spec: JsonObject) -> None:
        """Make a container, which does not run yet."""
        await self._call("POST", "/containers/create", spec, {"name": name})

    async def start(self, name: str) -> None:
        """Start a container."""
        await self._call("POST", f"/containers/{quote(name)}/start")

    async def remove(self, name: str) -> None:
        """Remove a container, and wait until it is gone; does nothing if it does not exist."""
        path = f"/containers/{quote(name)}"
        try:
            await self._call("DELETE", path, query={"force": "true", "v": "true"})
        except EngineFailed as error:
            if error.status == 409:  # it is being removed
                await self._call("POST", f"{path}/wait", query={"condition": "removed"}, none=404)
            elif error.status != 404:
                raise

    async def attach(self, name: str, link: asyncio.Protocol) -> "EngineStream":
        """Attach `link` to a container's first process."""
        loop = asyncio.get_running_loop()
        stream = EngineStream(name, link)
        try:
            async with ambient.limit(SECONDS_TO_ANSWER):
                await loop.create_unix_connection(lambda: stream, self.socket)
                await stream.opened
        except (TimeoutError, OSError) as error:
            stream.close()
            raise EngineFailed(str(error) or "it opens no streams in time") from None
        return stream

    async def _call(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        query: Mapping[str, str] | None = None,
        none: int = 0,
    ) -> bytes:
        """Call the engine. `none`: a status that means that the object does not exist."""
        timeout = aiohttp.ClientTimeout(total=SECONDS_TO_ANSWER)
        connector = aiohttp.UnixConnector(self.socket)
        try:
            async with (
                aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
                session.request(method, f"http://engine{path}", params=query, json=body) as answer,
            ):
                said = await answer.read()
        except TimeoutError:
            raise EngineFailed("it does not answer in time") from None
        except (aiohttp.ClientError, OSError) as error:
            words = error.strerror if isinstance(error, OSError) else ""
            raise EngineFailed(words or str(error)) from None
        if answer.status >= 400 and answer.status != none:
            raise EngineFailed(_read_refusal(said), answer.status)
        return said


class EngineStream(asyncio.Protocol):
    """The connection to a container's standard streams, which the engine multiplexes: output goes
    to the link, error output is kept."""

    def __init__(self, name: str, link: asyncio.Protocol) -> None:
        self.said = b""
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._name, self._link = name, link
        self._incoming = bytearray()
        self._transport: asyncio.Transport | None = None

    def close(self) -> None:
        """End the connection, if there is one."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(
            asyncio.Transport, transport
        )  # uvloop's transports are not subclasses of asyncio's
        query = "stream=1&stdin=1&stdout=1&stderr=1"
        head = f"POST /containers/{quote(self._name)}/attach?{query} HTTP/1.1\r\nHost: engine\r\n"
        more = "Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n"
        self._transport.write(f"{head}{more}".encode())

    def data_received(self, data: bytes) -> None:
        self._incoming += data
        if not self.opened.done():
            self._read_head()
        if self.opened.done():
            self._part()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.opened.done():
            self._link.connection_lost(exc)
        else:
            self.opened.set_exception(EngineFailed("it closes the connection"))

    def _read_head(self) -> None:
        head, end, rest = self._incoming.partition(b"\r\n\r\n")
        if not end and len(head) <= MAX_HEAD:
            return
        assert self._transport is not None
        status = head.split(b" ", 2)[1:2]
        if status in ([b"101"], [b"200"]):
            self._link.connection_made(self._transport)
            self.opened.set_result(None)
            self._incoming = rest
        else:
            words = head.partition(b"\r\n")[0].decode("latin-1")[:200]
            self.opened.set_exception(EngineFailed(f"it opens no streams ({words})"))
            self._transport.close()

    def _part(self) -> None:
        """Give each whole piece to whom it is for."""
        at = 0
        while len(self._incoming) - at >= _FRAME:
            end = at + _FRAME + int.from_bytes(self._incoming[at + 4 : at + _FRAME], "big")
            if len(self._incoming) < end:
                break
            piece = bytes(self._incoming[at + _FRAME : end])
            if self._incoming[at] == _STDOUT:
                self._link.data_received(piece)
            elif self._incoming[at] == _STDERR:
                self.said = (self.said + piece)[-MAX_SAID:]
            at = end
        del self._incoming[:at]


def _read_refusal(said: bytes) -> str:
    try:
        return msgspec.json.decode(said, type=_Refusal).message
    except msgspec.DecodeError:
        return said.decode("utf-8", "replace")[:200]
