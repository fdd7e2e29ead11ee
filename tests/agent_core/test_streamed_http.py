"""Calls to a model's server by aiohttp itself: proxies, refusals, answers that break."""

import gzip
import ssl
from collections.abc import AsyncIterator

import httpx2
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from agent_core.models.streamed_http import StreamedResponse, StreamingClient
from agent_core.models.trust import load_trust

TIMEOUT = httpx2.Timeout(30.0)


@pytest.fixture
async def heard() -> AsyncIterator[tuple[str, list[web.Request]]]:
    """A server's address, and what it was asked."""
    requests: list[web.Request] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        requests.append(request)
        if request.path == "/refused":
            body = gzip.compress(b'{"error": {"message": "no such model"}}')
            return web.Response(status=404, body=body, headers={"Content-Encoding": "gzip"})
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"data: one\n\n")
        if request.path == "/broken":
            assert request.transport is not None
            request.transport.abort()
        else:
            await response.write(b"data: two\n\n")
            await response.write_eof()
        return response

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        yield f"http://127.0.0.1:{server.port}", requests


async def read(response: StreamedResponse) -> bytes:
    return b"".join([piece async for piece in response.aiter_bytes()])


async def test_an_answer_is_read_as_it_comes(heard: tuple[str, list[web.Request]]) -> None:
    client = StreamingClient(f"{heard[0]}/v1/chat", TIMEOUT)
    response = await client.post({"Authorization": "Bearer k"}, b"{}", 2)
    assert (response.status, response.tries) == (200, 2)
    assert await read(response) == b"data: one\n\ndata: two\n\n"
    await response.aclose()
    assert heard[1][0].headers["authorization"] == "Bearer k"
    await client.close()


async def test_one_that_breaks_off_raises(heard: tuple[str, list[web.Request]]) -> None:
    client = StreamingClient(f"{heard[0]}/broken", TIMEOUT)
    response = await client.post({}, b"{}")
    with pytest.raises(httpx2.HTTPError):
        await read(response)
    await response.aclose()
    await client.close()


async def test_a_refusal_is_kept_whole(heard: tuple[str, list[web.Request]]) -> None:
    client = StreamingClient(f"{heard[0]}/refused", TIMEOUT)
    refusal = await (await client.post({}, b"{}")).keep()
    assert refusal.status_code == 404 and refusal.json()["error"]["message"] == "no such model"
    await client.close()


async def test_nobody_there_and_no_address_raise() -> None:
    for url in ("http://127.0.0.1:1/v1", "http://[:1/v1", "ftp://127.0.0.1/v1"):
        client = StreamingClient(url, TIMEOUT)
        with pytest.raises((httpx2.RequestError, httpx2.InvalidURL)):
            await client.post({}, b"{}")
        await client.close()


@pytest.mark.parametrize(("beyond", "by_proxy"), [("", True), ("models.invalid", False)])
async def test_the_proxy_of_the_environment_is_used(
    heard: tuple[str, list[web.Request]],
    monkeypatch: pytest.MonkeyPatch,
    beyond: str,
    by_proxy: bool,
) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY", "all_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", heard[0])
    monkeypatch.setenv("no_proxy", beyond)
    client = StreamingClient("http://models.invalid/v1/chat", TIMEOUT)
    if by_proxy:
        assert await read(await client.post({}, b"{}")) == b"data: one\n\ndata: two\n\n"
        assert heard[1][0].headers["host"] == "models.invalid"
    else:
        with pytest.raises(httpx2.RequestError):
            await client.post({}, b"{}")
    await client.close()


async def test_the_authorities_are_read_once_for_all_connections(
    heard: tuple[str, list[web.Request]], monkeypatch: pytest.MonkeyPatch
) -> None:
    load_trust()

    def read_again(*_: object) -> None:
        raise AssertionError("the authorities were read again")

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", read_again)
    client = StreamingClient(heard[0].replace("http", "https"), TIMEOUT)
    with pytest.raises(httpx2.ConnectError):  # what answers there speaks no TLS
        await client.post({}, b"{}")
    await client.close()
