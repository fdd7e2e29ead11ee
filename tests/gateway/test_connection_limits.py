"""Connections without a request take nobody else's place, and each has its time."""

import asyncio
import contextlib
import json
import sys
import time
from pathlib import Path

import aiohttp
import pytest

from gateway.errors import StoreFailed
from gateway.ops import connection_limits as module
from gateway.ops import http
from tests.fakes.waiting import PATIENCE
from tests.gateway.connections_rig import HALF, served

pytestmark = pytest.mark.pick("connections under load", 8)


async def closed(reader: asyncio.StreamReader) -> bytes:
    try:
        async with asyncio.timeout(PATIENCE):
            return await reader.read()
    except ConnectionResetError:
        return b""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.4)
    monkeypatch.setattr(module, "BODY_SECONDS", 0.2)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("sent", [b"", b"G", HALF, b"GET / HTTP/1.1\r\n" * 3])
async def test_half_a_head_is_closed(sent: bytes) -> None:
    async with served() as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(sent)
        said = await closed(reader)
        assert said == b"" or b"400 Bad Request" in said
        writer.close()


@pytest.mark.usefixtures("quick")
async def test_a_head_that_drips_is_closed() -> None:
    async with served() as address:
        reader, writer = await asyncio.open_connection(*address)
        ended = asyncio.create_task(closed(reader))
        dripped = 0
        for byte in HALF * 20:
            if ended.done():
                break
            writer.write(bytes([byte]))
            dripped += 1
            await asyncio.sleep(0.02)
        assert await ended == b"" and dripped < 40
        writer.close()


@pytest.mark.usefixtures("quick")
async def test_a_body_that_does_not_come_is_closed() -> None:
    async with served() as address:
        for head in (b"Content-Length: 10", b"Transfer-Encoding: chunked"):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"POST / HTTP/1.1\r\nHost: a\r\n" + head + b"\r\n\r\n1")
            assert await closed(reader) == b""
            writer.close()


@pytest.mark.usefixtures("quick")
async def test_a_body_that_cannot_be_read_is_closed_although_more_of_it_comes() -> None:
    async with served() as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        ended = asyncio.create_task(closed(reader))
        await asyncio.sleep(0.05)  # the request is under way
        for _ in range(100):
            if ended.done():
                break
            writer.write(b"no chunk\r\n" * 100)
            await asyncio.sleep(0.02)
        assert b"200" not in await ended
        writer.close()


async def test_refusals_are_spread_over_time_and_hold_up_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "REFUSAL_BURST", 4)
    monkeypatch.setattr(module, "REFUSALS_EACH_SECOND", 20.0)
    began = time.monotonic()

    async def ask(address: tuple[str, int], path: str) -> tuple[bytes, float]:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n" % path.encode())
        line = await reader.readline()
        writer.close()
        return line[9:12], time.monotonic() - began

    async with served() as address:
        asked = [asyncio.create_task(ask(address, "/refused")) for _ in range(24)]
        await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        assert (await ask(address, "/"))[0] == b"200"
        assert not all(one.done() for one in asked), "it waited for none of them"
        said = await asyncio.gather(*asked)
    assert {status for status, _ in said} == {b"413"}
    for number, at in enumerate(sorted(at for _, at in said)):
        assert at > (number - 5) / 20, "sooner than the pace allows"


async def test_a_refusal_that_would_wait_for_too_long_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "REFUSAL_BURST", 4)
    monkeypatch.setattr(module, "REFUSALS_EACH_SECOND", 0.001)
    pace = module.RefusalPace()
    assert [await pace.wait() for _ in range(7)] == [True] * 5 + [False] * 2


async def test_of_a_body_that_nobody_wants_no_more_is_read() -> None:
    size, piece, sent = 256 << 20, b"x" * (1 << 16), 0
    async with served() as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"POST /refused HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % size)

        async def send() -> None:
            nonlocal sent
            with contextlib.suppress(OSError):
                while sent < size:
                    writer.write(piece)
                    sent += len(piece)
                    await writer.drain()

        sending = asyncio.create_task(send())
        assert b"413" in await reader.readline()
        async with asyncio.timeout(PATIENCE):
            await sending
        assert sent < size // 4, "the connection is closed, not drained"
        writer.close()


async def test_what_cannot_be_read_ends_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time has to pass: some bytes by which no body grows are enough."""
    monkeypatch.setattr(module, "BODY_SECONDS", 600.0)
    size, piece, sent = 64 << 20, b"x" * (1 << 16), 0
    async with served() as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n")
        writer.write(b"Transfer-Encoding: chunked\r\n\r\n")
        async with asyncio.timeout(PATIENCE):
            assert b"100 Continue" in await reader.readuntil(b"\r\n\r\n")
        with contextlib.suppress(OSError):
            async with asyncio.timeout(PATIENCE):
                while sent < size:
                    writer.write(piece)
                    sent += len(piece)
                    await writer.drain()
        assert await closed(reader) == b""
        assert sent < size // 4
        writer.close()


@pytest.mark.parametrize("chunked", [True, False])
async def test_a_large_body_that_comes_with_its_head_is_read(chunked: bool) -> None:
    body = b"y" * 900_000
    async with served() as address:
        reader, writer = await asyncio.open_connection(*address)
        for _ in range(3):  # the connection goes on
            kind = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % len(body)
            sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body
            writer.write(b"POST / HTTP/1.1\r\nHost: a\r\n" + kind + b"\r\n\r\n" + sent)
            async with asyncio.timeout(PATIENCE):
                assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
                assert await reader.readexactly(len(body)) == body
        writer.close()


async def test_after_a_small_body_that_was_not_read_the_connection_goes_on() -> None:
    async with served() as address:
        reader, writer = await asyncio.open_connection(*address)
        for _ in range(3):
            writer.write(b"POST /refused HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n123456789")
            async with asyncio.timeout(PATIENCE):
                assert b"413" in await reader.readuntil(b"refused")
        writer.close()


@pytest.mark.usefixtures("quick")
async def test_a_request_under_way_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS", 2.0)
    async with served() as address:
        reader, writer = await asyncio.open_connection(*address)
        for _ in range(2):
            writer.write(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
            async with asyncio.timeout(PATIENCE):
                assert b"200 OK" in await reader.readuntil(b"slow")
            await asyncio.sleep(0.25)  # longer than a head may take, shorter than a pause may
        assert await closed(reader) == b""
        writer.close()


async def test_others_are_served_while_hundreds_hold_half_a_request() -> None:
    async with served(most=20) as address:
        held = []
        for _ in range(300):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(HALF)
            held.append((reader, writer))
        url = "http://{}:{}/".format(*address)
        async with aiohttp.ClientSession() as session:
            for _ in range(10):
                async with session.get(url) as answer:
                    assert answer.status == 200
        for _, writer in held:
            writer.close()


async def test_work_under_way_makes_no_room() -> None:
    async with served(most=4) as address:
        busy = []
        for _ in range(4):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
            await reader.readuntil(b"200 OK")
            busy.append((reader, writer))
        reader, writer = await asyncio.open_connection(*address)
        assert await closed(reader) == b""
        for busy_reader, busy_writer in busy:
            await busy_reader.readuntil(b"slow")
            busy_writer.close()
        writer.close()


SMALL = """
import asyncio, resource, socket, sys, json
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
from tests.gateway.connections_rig import served

async def main():
    async with served() as address:
        print(json.dumps(address), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        open("/dev/null").close()
        print("files left", flush=True)

asyncio.run(main())
"""


async def test_a_process_of_few_files_is_not_starved() -> None:
    root = Path(__file__).parents[2]
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SMALL), cwd=root, stdin=-1, stdout=-1
    )
    assert child.stdout is not None and child.stdin is not None
    address = json.loads(await child.stdout.readline())
    held = [await asyncio.open_connection(*address) for _ in range(300)]
    for _, writer in held:
        writer.write(HALF)
    url = "http://{}:{}/".format(*address)
    async with aiohttp.ClientSession() as session:
        for _ in range(5):
            async with session.get(url) as answer:
                assert answer.status == 200
    child.stdin.write(b"\n")
    assert await child.stdout.readline() == b"files left\n"
    for _, writer in held:
        writer.close()
    assert await child.wait() == 0


async def test_the_store_is_looked_at_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(http.ambient, "monotonic", lambda: now[0])
    looked: list[str] = []
    failing = False

    class Slow:
        async def put(self, key: str, value: bytes) -> None:
            looked.append(key)
            await asyncio.sleep(0)
            if failing:
                raise StoreFailed("disk full")

    probe = http.StoreProbe()
    said = await asyncio.gather(*(probe.state(Slow()) for _ in range(300)))  # type: ignore[arg-type]
    assert set(said) == {"writable"} and len(looked) == 1
    failing = True
    assert await probe.state(Slow()) == "writable"  # type: ignore[arg-type]
    now[0] += 1.0
    assert await probe.state(Slow()) == "disk full"  # type: ignore[arg-type]
    assert len(looked) == 2


async def test_half_a_head_takes_no_task_and_a_whole_one_does() -> None:
    async with served() as (host, port):
        before = len(asyncio.all_tasks())
        held = [await asyncio.open_connection(host, port) for _ in range(20)]
        for _, writer in held:
            writer.write(HALF)
        reader, writer = await asyncio.open_connection(host, port)
        for piece in (b"\r\nG", b"ET / HTTP/1.1\r\nHost: a\r", b"\n", b"\r", b"\n"):
            writer.write(piece)
            await writer.drain()
            assert len(asyncio.all_tasks()) == before
            await asyncio.sleep(0)
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        assert len(asyncio.all_tasks()) == before + 1
        for _, other in (*held, (reader, writer)):
            other.close()


@pytest.mark.parametrize(
    "sent", [b"\x16\x03\x01\x02", b"GET/ x\r\n", b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000]
)
async def test_what_cannot_become_a_head_is_answered_at_once(sent: bytes) -> None:
    async with served() as (host, port):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(sent)
        assert b" 400 " in await reader.readline()
        writer.close()
