"""A proxy on loopback between a client and a Redis that knows the protocol: a test decides what
becomes of each reply. What a faulty proxy, or a server in trouble, does to requests."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

Words: TypeAlias = "list[bytes]"
Mix: TypeAlias = Callable[[Words, bytes, "list[bytes]"], bytes]
"""A command, its reply, and the replies that this connection had before: what the client gets."""


class RedisProxy:
    """Listens on a free port and carries to the server at the unix socket `target`."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.port = 0
        self.mix: Mix | None = None
        """Changes replies while it is set, but not those to a subscriber."""
        self.mixed = 0
        """Replies that were changed."""
        self.published = b""
        """Sent in place of all that a subscriber would get."""
        self._carriers: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "RedisProxy":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for carrier in self._carriers:
            carrier.cancel()
        await asyncio.gather(*self._carriers, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        """The address of the Redis behind it."""
        return f"redis://127.0.0.1:{self.port}/0"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_unix_connection(self.target)
        asked: asyncio.Queue[Words] = asyncio.Queue()
        carriers = [
            asyncio.create_task(self._ask(reader, forth, asked)),
            asyncio.create_task(self._answer(back, writer, asked)),
        ]
        self._carriers.update(carriers)
        try:
            await asyncio.wait(carriers, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for carrier in carriers:
                carrier.cancel()
            self._carriers.difference_update(carriers)
            for one in (writer, forth):
                one.transport.abort()

    async def _ask(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, asked: asyncio.Queue[Words]
    ) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                raw, words = await _read_command(source)
                asked.put_nowait(words)
                sink.write(raw)
                await sink.drain()

    async def _answer(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, asked: asyncio.Queue[Words]
    ) -> None:
        before: list[bytes] = []
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                words = await asked.get()
                if words[0].upper() == b"SUBSCRIBE":
                    while data := await source.read(1 << 16):
                        sink.write(self.published or data)
                        await sink.drain()
                    return
                reply = await _read_reply(source)
                told = reply if self.mix is None else self.mix(words, reply, before)
                self.mixed += told != reply
                before.append(reply)
                sink.write(told)
                await sink.drain()


async def _read_command(reader: asyncio.StreamReader) -> tuple[bytes, Words]:
    raw = await reader.readuntil(b"\r\n")
    words: Words = []
    for _ in range(int(raw[1:])):
        head = await reader.readuntil(b"\r\n")
        body = await reader.readexactly(int(head[1:]) + 2)
        raw += head + body
        words.append(body[:-2])
    return raw, words


async def _read_reply(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n")
    count = int(head[1:]) if head[:1] in b"$*" else -1
    if head[:1] == b"$" and count >= 0:
        return head + await reader.readexactly(count + 2)
    return head + b"".join([await _read_reply(reader) for _ in range(count)])
