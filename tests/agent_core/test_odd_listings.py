"""What servers say about themselves and what searches find: read whole however it comes, and no
form of it stops more than its own question."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from agent_core.errors import ToolFailed
from agent_core.models.discovery import Port, discover
from agent_core.models.windows import ask_models, ask_windows
from agent_core.settings import Endpoint
from agent_core.tools.web.search import JsonSearch
from agent_core.tools.web.settings import WebSettings
from gateway.accounts.telegram import Telegram
from gateway.cli.probes import Platforms

MODEL, WINDOW = "m/talks", 12_345
OTHERS = [{"id": f"other-{n}", "context_length": n, "name": "x" * 200} for n in range(1_000)]
LISTED = {"data": [*OTHERS, {"id": MODEL, "context_length": WINDOW}]}
HITS = {"results": [{"url": "https://a.example/", "title": "A", "content": "x" * 100_000}]}
KNOWN = {"ok": True, "result": {"id": 7, "username": "b", "pad": "x" * 100_000}, "username": "b"}
SLICES = (1, 4_096, 70_000)
"""Bytes of a first piece; the rest comes later."""
ODD: dict[str, bytes] = {
    "deep": b"[" * 200_000,
    "deep and closed": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"data":' * 100_000,
    "not UTF-8": b'{"data": "\xff\xfe"}',
    "half a character": b'{"data": "\\ud83d"}',
    "nothing": b"",
    "cut": json.dumps(LISTED).encode()[:-7],
    "a number": b"1" * 100_000,
    "large": b'{"data": "' + b"x" * 17_000_000 + b'"}',
}


class ListingServer:
    """Answers each question with the same bytes, in two pieces."""

    def __init__(self) -> None:
        self.body, self.first, self.packed = b"", 0, False
        self.address = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = gzip.compress(self.body) if self.packed else self.body
        given = web.StreamResponse(headers={"Content-Type": "application/json"})
        if self.packed:
            given.headers["Content-Encoding"] = "gzip"
        await given.prepare(request)
        await given.write(body[: self.first])
        await asyncio.sleep(0.02)
        await given.write(body[self.first :])
        return given


@pytest.fixture
async def server() -> AsyncIterator[ListingServer]:
    made = ListingServer()
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", made.answer)
    async with TestServer(app) as listening:
        made.address = f"http://127.0.0.1:{listening.port}"
        yield made


def endpoint(server: ListingServer) -> Endpoint:
    return Endpoint(provider="p", base_url=f"{server.address}/v1", api_key="k", own_server=True)


async def check_bot(server: ListingServer) -> tuple[str, str]:
    """What `doctor` says of a bot whose platform answers so."""
    bot = Telegram(token="7:AAfake-token-of-a-bot-0123456789abcde", api_base_url=server.address)
    async with aiohttp.ClientSession() as session:
        (found, *_) = await Platforms(session).probe_bot(bot)
    return found.mark, found.text


async def search(server: ListingServer) -> str:
    settings = WebSettings.read({"TAVILY_API_KEY": "k", "TAVILY_BASE_URL": server.address})
    return (await JsonSearch(settings).find("q", 3))[0].title


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("first", SLICES)
async def test_a_body_that_comes_in_pieces_is_read_whole(
    server: ListingServer, first: int, packed: bool
) -> None:
    server.first, server.packed = first, packed
    server.body = json.dumps(LISTED).encode()
    asked = endpoint(server)
    found = await ask_windows([(asked, MODEL)])
    assert found["p", MODEL].tokens == WINDOW
    assert MODEL in await ask_models(asked)
    port = int(server.address.rpartition(":")[2])
    assert (here := await discover(ports=(Port("vllm", port),))) and here.tier_models.pro
    server.body = json.dumps(HITS).encode()
    assert await search(server) == "A"
    server.body = json.dumps(KNOWN).encode()
    assert await check_bot(server) == ("ok", "@b")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ODD)
async def test_a_body_that_says_nothing_is_no_more_than_that(
    server: ListingServer, kind: str, packed: bool
) -> None:
    server.body, server.packed = ODD[kind], packed
    asked = endpoint(server)
    assert await ask_windows([(asked, MODEL)]) == {}
    assert await ask_models(asked) == ()
    port = int(server.address.rpartition(":")[2])
    assert await discover(ports=(Port("vllm", port),)) is None
    with pytest.raises(ToolFailed):
        await search(server)
    mark, text = await check_bot(server)
    assert mark == "wrong" and "is not what answers at TELEGRAM_API_BASE_URL=" in text
