"""Apps behind the preview that do not speak HTTP as they should."""

import asyncio
import contextlib
import socket
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from agent_core.sandboxes.previews.server import MAX_VISITS, PreviewServer
from tests.fakes.waiting import PATIENCE

INTERIM = [
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n",
    b"HTTP/1.1 199 \r\nX-A: " + b"a" * 4000 + b"\r\n\r\n",
]
FINAL = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@asynccontextmanager
async def shown(pieces: list[bytes], again: bytes = b"") -> AsyncIterator[tuple[str, int]]:
    """The address of a preview of an app that sends `pieces`, then `again` for ever."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.writelines(pieces)
            while again:
                writer.write(again)
                await writer.drain()
            await writer.drain()
        writer.close()

    async def connect(*_: object) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        raise OSError

    app = await asyncio.start_server(answer, "127.0.0.1", 0)
    preview = PreviewServer(connect)
    base = await preview.mount("app", app.sockets[0].getsockname()[1])
    try:
        yield "127.0.0.1", int(base.split(":")[2].partition("/")[0])
    finally:
        await preview.close()
        app.close()


async def ask(address: tuple[str, int]) -> socket.socket:
    """A client that asked, and reads nothing of its own."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, address)
    line = "GET /app/ HTTP/1.1\r\nHost: {}:{}\r\n\r\n".format(*address)
    await loop.sock_sendall(client, line.encode())
    return client


async def read_all(client: socket.socket) -> bytes:
    loop, found = asyncio.get_running_loop(), b""
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionResetError):
            while data := await loop.sock_recv(client, 1 << 16):
                found += data
    return found


@pytest.mark.parametrize("many", [0, 1, 50])
@pytest.mark.parametrize("interim", INTERIM, ids=["100", "103", "199"])
async def test_interim_answers_are_forwarded_before_the_final_one(
    interim: bytes, many: int
) -> None:
    async with shown([interim] * many + [FINAL]) as address:
        with contextlib.closing(await ask(address)) as client:
            said = await read_all(client)
            assert said.count(interim) == many and said.endswith(b"ok")


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize("interim", INTERIM, ids=["100", "103", "199"])
async def test_interim_answers_without_an_end_take_no_memory(interim: bytes, reads: bool) -> None:
    async with shown([], again=interim * 100) as address:
        tracemalloc.start()
        try:
            with contextlib.closing(await ask(address)) as client:
                if reads:
                    assert b"502 Bad Gateway" in await read_all(client)
                else:
                    await asyncio.sleep(1)
            assert tracemalloc.get_traced_memory()[1] < 8_000_000
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"hello",
        b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 1_000_000 + b"\r\n\r\nok",
        b"\0" * 600_000,
    ],
    ids=["nothing", "half a head", "a word", "a huge head", "zeros"],
)
async def test_an_answer_that_is_none_is_told(sent: bytes) -> None:
    async with shown([sent]) as address:
        with contextlib.closing(await ask(address)) as client:
            said = await read_all(client)
            assert said.startswith(b"HTTP/1.1 502 Bad Gateway\r\n") and b"<p>" in said


@pytest.mark.parametrize("sent", [b"", b"G", b"GET / HTTP/1.1\r\nHost: a\r\nX-A"])
async def test_visitors_who_ask_nothing_take_no_more_than_their_share(sent: bytes) -> None:
    async with shown([FINAL]) as address:
        held = [await asyncio.open_connection(*address) for _ in range(MAX_VISITS + 40)]
        for _, writer in held:
            with contextlib.suppress(OSError):
                writer.write(sent)
        ended = 0
        for reader, _ in held[MAX_VISITS:]:
            async with asyncio.timeout(PATIENCE):
                with contextlib.suppress(ConnectionResetError):
                    ended += await reader.read() == b""
                    continue
                ended += 1
        assert ended == 40 and not any(reader.at_eof() for reader, _ in held[:MAX_VISITS])
        for _, writer in held:
            writer.close()
        async with asyncio.timeout(PATIENCE):
            said = b""
            while not said.endswith(b"ok"):  # until those have gone
                with contextlib.closing(await ask(address)) as client:
                    said = await read_all(client)
