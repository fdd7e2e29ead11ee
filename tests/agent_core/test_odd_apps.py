"""Apps behind the preview that do not speak HTTP as they should."""

import asyncio
import contextlib
import socket
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from agent_core.sandboxes.previews import server
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


async def has_ended(reader: asyncio.StreamReader) -> bool:
    """Wait until the other side closes the connection."""
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionResetError):
            return await reader.read() == b""
    return True


@pytest.mark.parametrize("sent", [b"", b"G", b"GET / HTTP/1.1\r\nHost: a\r\nX-A"])
async def test_visitors_who_ask_nothing_make_room_for_others(sent: bytes) -> None:
    async with shown([FINAL]) as address:
        held = [await asyncio.open_connection(*address) for _ in range(MAX_VISITS + 40)]
        for _, writer in held:
            with contextlib.suppress(OSError):
                writer.write(sent)
        assert all([await has_ended(reader) for reader, _ in held[:40]])
        assert not any(reader.at_eof() for reader, _ in held[40:])
        for _ in range(3):
            with contextlib.closing(await ask(address)) as client:
                assert (await read_all(client)).endswith(b"ok")
        assert sum(reader.at_eof() for reader, _ in held[40:]) <= 3
        for _, writer in held:
            writer.close()


async def test_visitors_who_wait_for_the_app_keep_their_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "MAX_VISITS", 6)
    async with shown([b"HTTP/1.1 200 OK\r\n\r\n"], again=b"more") as address:
        for _ in range(9):  # they leave, and with them their places
            reader, writer = await asyncio.open_connection(*address)
            writer.write_eof()
            assert await has_ended(reader)
            writer.close()
        with contextlib.ExitStack() as visits:
            clients = [
                visits.enter_context(contextlib.closing(await ask(address))) for _ in range(6)
            ]
            loop = asyncio.get_running_loop()
            for client in clients:
                assert await loop.sock_recv(client, 1) == b"H"
            one_more, writer = await asyncio.open_connection(*address)
            assert await has_ended(one_more)
            writer.close()
            for client in clients:
                assert await loop.sock_recv(client, 1)
