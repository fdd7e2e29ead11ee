"""Files that a platform, or something before it, hands out wrongly: led elsewhere, of another length
than it says, cut off, without an end. Nothing is asked elsewhere, nothing but the failure is told."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from io import BytesIO
from typing import BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from telegram.error import TelegramError

from adapters.discord.adapter import DiscordAdapter
from adapters.slack.transport import SlackWire, write
from adapters.telegram.adapter import TelegramAdapter
from adapters.telegram.files import download
from gateway.errors import DeliveryError
from tests.fakes.raw_server import head
from tests.fakes.waiting import PATIENCE
from tests.sampling import examples

MOST = 25 << 20
"""Bytes that any of the platforms' files may have, or more."""
Fetch = Callable[[str, BinaryIO], Awaitable[None]]


class FileServer:
    """Answers each request with the same bytes, again and again if it has no end."""

    def __init__(self, answer: bytes, piece: bytes = b"") -> None:
        self._answer, self._piece = answer, piece
        self.asked: list[bytes] = []

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            self.asked.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(self._answer)
            while self._piece:
                writer.write(self._piece)
                await writer.drain()
            await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def serve(server: FileServer) -> AsyncIterator[str]:
    listening = await asyncio.start_server(server.take, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()


async def fetch_from_telegram(url: str, to: BinaryIO) -> None:
    adapter = TelegramAdapter("123456:TEST", url)
    try:
        await download(adapter._wire, f"{url}/file/bot123456:TEST/a", to)
    finally:
        await adapter._wire.shutdown()


async def fetch_from_discord(url: str, to: BinaryIO) -> None:
    adapter = DiscordAdapter("token", url)
    try:
        await adapter._download(f"{url}/a", to)
    finally:
        await adapter._wire.close()


async def fetch_from_slack(url: str, to: BinaryIO) -> None:
    wire = SlackWire("xoxb-1", f"{url}/")
    try:
        async with wire.download(f"{url}/a") as chunks:
            await write(chunks, to, MOST)
    finally:
        await wire.close()


FETCHES = [fetch_from_telegram, fetch_from_discord, fetch_from_slack]


@pytest.mark.parametrize("fetch", FETCHES)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_file_is_asked_for_elsewhere(fetch: Fetch, status: int) -> None:
    other = FileServer(head("text/plain") + b"of somebody else")
    async with serve(other) as foreign:
        led = FileServer(head("text/html", f"{status} X", f"Location: {foreign}/b"))
        async with serve(led) as url:
            with pytest.raises(Exception, match=str(status)):
                await fetch(url, taken := BytesIO())
    assert not other.asked, "no token goes there, and no secret of this machine comes back"
    assert not taken.getvalue()


@pytest.mark.parametrize("fetch", FETCHES)
async def test_a_file_without_an_end_is_not_kept(fetch: Fetch) -> None:
    async with serve(FileServer(head("image/png"), b"x" * (1 << 20))) as url:
        with pytest.raises(DeliveryError, match="larger than"):
            await fetch(url, taken := BytesIO())
    assert len(taken.getvalue()) <= MOST


@pytest.mark.parametrize("fetch", FETCHES)
@given(
    told=st.sampled_from(
        ["Content-Length: {}", "Transfer-Encoding: chunked", "Content-Encoding: gzip"]
    ),
    number=st.sampled_from([0, 1, 5, 9, 10**9, 10**30, -1]),
    status=st.sampled_from([200, 200, 200, 204, 206, 400, 401, 404, 429, 500, 503]),
    body=st.binary(max_size=20),
)
@settings(max_examples=examples(150), deadline=None)
def test_a_file_that_lies_fails_and_nothing_else(
    fetch: Fetch, told: str, number: int, status: int, body: bytes
) -> None:
    async def call() -> None:
        answer = head("image/png", f"{status} X", told.format(number)) + body
        async with asyncio.timeout(PATIENCE), serve(FileServer(answer)) as url:
            with contextlib.suppress(DeliveryError, TelegramError):
                await fetch(url, BytesIO())

    asyncio.run(call())
