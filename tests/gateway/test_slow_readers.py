"""Readers of a conversation that stop reading cost neither memory nor an error in the log."""

import asyncio
import contextlib
import json
import re
import socket
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession, CookieJar
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.conversation.feed import Feed
from gateway.live_queue import LiveQueue
from gateway.ops import connection_limits
from gateway.ports import Changed, Growing, Live, Printed
from tests.fakes.model_server import Say
from tests.fakes.waiting import until
from tests.gateway.connections_rig import served
from tests.gateway.process import START, Run, World
from tests.sampling import examples

TURNS = st.sampled_from(["t1", "t2", "t3"])
CHANGES = st.one_of(
    TURNS.map(lambda turn: Growing(turn=turn, text="")),
    TURNS.map(lambda turn: Printed(turn=turn, call_id="c", text="out")),
    st.just(Changed()),
)


def grow(changes: Sequence[Live]) -> list[Live]:
    """The same, with texts that tell one growth from the next."""
    return [
        Growing(turn=one.turn, text="x" * at) if isinstance(one, Growing) else one
        for at, one in enumerate(changes)
    ]


@given(st.lists(CHANGES, max_size=60))
@settings(max_examples=examples(200), deadline=None)
def test_only_the_newest_growth_of_each_reply_waits(changes: list[Live]) -> None:
    changes = grow(changes)
    queue: LiveQueue[Live] = LiveQueue()
    for one in changes:
        queue.put_nowait(one)
    left = [queue.get_nowait() for _ in range(queue.qsize())]
    growths = {one.turn: one for one in changes if isinstance(one, Growing)}
    assert {one.turn: one for one in left if isinstance(one, Growing)} == growths
    assert sum(isinstance(one, Growing) for one in left) == len(growths)
    rest = [one for one in changes if not isinstance(one, Growing)]
    assert [one for one in left if not isinstance(one, Growing)] == rest


async def test_a_watcher_who_never_looks_holds_one_text() -> None:
    feed = Feed()
    async with feed.watch("c") as live:
        for length in range(1, 2000):
            feed.publish("c", Growing(turn="t", text="x" * length))
        feed.publish("c", Changed())
        assert await anext(live) == Growing(turn="t", text="x" * 1999)
        assert isinstance(await anext(live), Changed)


async def open_stream(run: Run, chat: str, cookie: str) -> socket.socket:
    """A stream whose client has a small buffer, and reads nothing."""
    port = int(run.url.rstrip("/").rpartition(":")[2])
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, ("127.0.0.1", port))
    head = f"GET /api/conversations/{chat}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    await loop.sock_sendall(client, f"{head}Cookie: {cookie}\r\n\r\n".encode())
    return client


def read_memory(run: Run) -> int:
    """Megabytes."""
    status = Path(f"/proc/{run.pid}/status").read_text()
    found = re.search(r"^VmHWM:\s+(\d+)", status, re.M)
    assert found
    return int(found[1]) >> 10


SHAPES = ["body", "file", "stream"]
SIZES = [1_000_000, 8_000_000]
"""Bytes: less and more than the system buffers."""


@asynccontextmanager
async def asked(address: tuple[str, int], shape: str, size: int) -> AsyncIterator[socket.socket]:
    """A client with a small buffer that asked for much."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, address)
    line = f"GET /much?as={shape}&bytes={size} HTTP/1.1\r\nHost: a\r\n\r\n"
    await loop.sock_sendall(client, line.encode())
    try:
        yield client
    finally:
        client.close()


async def read_slowly(client: socket.socket, pauses: int, pause: float) -> int:
    """Bytes until the end, after pauses between small pieces."""
    loop, found = asyncio.get_running_loop(), 0
    with contextlib.suppress(ConnectionResetError):
        while data := await loop.sock_recv(client, 1 << 16):
            found += len(data)
            if pauses > 0:
                pauses -= 1
                await asyncio.sleep(pause)
    return found


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(connection_limits, "IDLE_SECONDS", 0.4)
    monkeypatch.setattr(connection_limits, "STALLED_SECONDS", 0.6)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shape", SHAPES)
async def test_a_reader_who_goes_on_gets_all_however_slowly(
    tmp_path: Path, shape: str, size: int
) -> None:
    async with served(folder=tmp_path) as address, asked(address, shape, size) as client:
        assert await read_slowly(client, 30, 0.05) > size


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.parametrize("shape", SHAPES)
async def test_a_reader_who_stops_is_let_go(tmp_path: Path, shape: str, size: int) -> None:
    async with served(folder=tmp_path) as address, asked(address, shape, size) as client:
        await asyncio.sleep(2.5)
        assert await read_slowly(client, 0, 0) < size


@pytest.mark.pick
async def test_streams_that_nobody_reads_take_little_memory(world: World) -> None:
    text = " ".join(f"word{n}" for n in range(30_000))
    world.model.script(*[Say(text, words=20)] * 4)
    run = await world.start(LOG_LEVEL="info")
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as page:
        page.headers["Origin"] = run.url.rstrip("/")
        assert (await page.get(run.link)).status == 200
        cookie = "; ".join(f"{one.key}={one.value}" for one in page.cookie_jar)
        quiet = count_connections(run)
        streams = [await open_stream(run, f"c{n}", cookie) for n in range(4)]
        before = read_memory(run)
        for n in range(4):
            said = await page.post(f"{run.url}api/conversations/c{n}/messages", json={"text": "hi"})
            assert said.status == 202
        for n in range(4):
            await until_idle(page, f"{run.url}api/conversations/c{n}")
        assert read_memory(run) - before < 100
        for stream in streams:  # they vanish while the gateway waits for them
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            stream.close()
        await until(lambda: count_connections(run) < quiet + 4, START)
    assert await run.end() == 0
    assert "Traceback" not in run.log


async def until_idle(page: ClientSession, url: str) -> None:
    async with asyncio.timeout(START):
        while True:
            async with page.get(url) as answer:
                shown = json.loads(await answer.read())
            if shown["state"] == "idle" and len(shown["views"]) > 1:
                return
            await asyncio.sleep(0.05)


def count_connections(run: Run) -> int:
    found = 0
    for one in Path(f"/proc/{run.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found += one.readlink().name.startswith("socket:")
    return found
