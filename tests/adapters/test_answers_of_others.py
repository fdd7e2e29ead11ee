"""What a proxy, a firewall or a captive portal answers in place of the platform decides nothing."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from io import BytesIO

import pytest
from discord.http import Route
from hypothesis import given, settings
from hypothesis import strategies as st

import adapters.discord.transport
import adapters.slack.transport
import adapters.telegram.transport
from adapters.discord.transport import DiscordWire
from adapters.http_errors import MAX_ANSWER
from adapters.slack.transport import SlackWire
from adapters.telegram.adapter import TelegramAdapter
from gateway.errors import Ambiguous, DeliveryError, RateLimited, Unsent
from gateway.messages import Conversation
from gateway.views import ReplyView
from tests.fakes.raw_server import head, serving
from tests.fakes.waiting import PATIENCE
from tests.sampling import dice, examples, take

PAGES = (b"", b"<html>Sign in</html>", b"[]", b"5", b"null", b'"no"', b"\xff{", b"[" * 50_000)
REFUSALS = [code for code in range(400, 500) if code not in (413, 429)]
STATUSES = [*range(300, 309), 401, 403, 404, *take(REFUSALS, 8, "statuses")]

Send = Callable[[str], Awaitable[object]]


async def send_to_telegram(url: str) -> object:
    adapter = TelegramAdapter("123456:TEST", url)
    where = Conversation(platform="telegram", account="123456", channel="7", private=True)
    try:
        return await adapter.send(where, adapter.render(ReplyView(text="x"), where)[0])
    finally:
        await adapter._wire.shutdown()


async def send_to_discord(url: str) -> object:
    wire = DiscordWire("token", url)
    try:
        route = Route("POST", "/channels/{channel_id}/messages", channel_id=7)
        return await wire.request(route, json={"content": "x"})
    finally:
        assert not wire.token_refused
        await wire.close()


async def send_to_slack(url: str) -> object:
    wire = SlackWire("xoxb-1", f"{url}/")
    try:
        return await wire.call("chat.postMessage", {"channel": "C0DEV", "text": "x"})
    finally:
        assert not wire.token_refused
        await wire.close()


LIMITS = [
    (adapters.discord.transport, "MAX_CALL"),
    (adapters.slack.transport, "READ_TIMEOUT"),
    (adapters.telegram.transport, "CONNECT_TIMEOUT"),
    (adapters.telegram.transport, "READ_TIMEOUT"),
]
SENDS = [send_to_telegram, send_to_discord, send_to_slack]
KINDS = (
    "application/json", "application/json; charset=nonsense", "text/plain", "text/html",
    "application/gzip", "application/json\r\nContent-Encoding: gzip", "x",
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("ok", "error", "result", "ts", "retry_after", "parameters", "response_metadata", "id")


def encode(value: object) -> bytes:
    return json.dumps(value).encode()


OBJECTS = st.dictionaries(st.sampled_from(FIELDS), VALUES | st.just("ratelimited"))


@pytest.mark.parametrize("send", SENDS)
@pytest.mark.parametrize("status", STATUSES)
async def test_another_server_refuses_neither_token_nor_message(send: Send, status: int) -> None:
    page = dice("page", status).choice(PAGES)
    led = "Location: /elsewhere"
    async with serving(lambda _: head("text/html", f"{status} X", led) + page) as (url, server):
        with pytest.raises(Ambiguous):
            await send(url)
    assert server.asked == 1, "no redirect is followed"


@pytest.mark.parametrize("send", SENDS)
async def test_another_server_may_ask_for_patience(send: Send) -> None:
    async with serving(lambda _: head("text/html", "429 X") + b"<html>") as (url, _):
        with pytest.raises(RateLimited):
            await send(url)


@pytest.mark.parametrize("send", SENDS)
async def test_an_answer_that_comes_byte_by_byte_is_not_awaited(
    send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in LIMITS:
        monkeypatch.setattr(module, name, 0.2)

    left = asyncio.Event()

    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            writer.write(head("application/json"))
            while not writer.is_closing():
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.01)
        writer.close()
        left.set()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    async with server, asyncio.timeout(PATIENCE):
        with pytest.raises(Ambiguous):
            await send(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await left.wait()


@pytest.mark.parametrize("send", SENDS)
@pytest.mark.parametrize("status", [200, 400, 429, 502])
async def test_an_answer_without_an_end_is_not_held(send: Send, status: int) -> None:
    pieces = [head("application/json", f"{status} X"), *[b'"' + b"x" * (1 << 20)] * 64]
    async with serving(lambda _: pieces) as (url, _):
        with pytest.raises(Ambiguous, match="no answer"):
            await send(url)
    assert MAX_ANSWER < 64 << 20


@pytest.mark.parametrize("send", SENDS)
@given(
    kind=st.sampled_from(KINDS),
    status=st.sampled_from([200, 200, 400, 429, 502]),
    page=st.sampled_from(PAGES) | st.binary(max_size=50) | (OBJECTS | VALUES).map(encode),
)
@settings(max_examples=examples(200), deadline=None)
def test_no_answer_is_an_error_of_any_other_kind(
    send: Send, kind: str, status: int, page: bytes
) -> None:
    """An adapter ends at an error that it does not know."""

    async def call() -> None:
        async with serving(lambda _: head(kind, f"{status} X") + page) as (url, _):
            with contextlib.suppress(DeliveryError):
                await send(url)

    asyncio.run(call())


PARAMETERS = st.dictionaries(st.sampled_from(["migrate_to_chat_id", "retry_after"]), VALUES)


@given(
    status=st.sampled_from([400, 401, 403, 404, 409, 418, 429]),
    parameters=VALUES | PARAMETERS,
    description=VALUES,
)
@settings(max_examples=examples(200), deadline=None)
def test_odd_parameters_of_a_refusal_by_telegram_are_no_other_error(
    status: int, parameters: object, description: object
) -> None:
    answer = {"ok": False, "parameters": parameters, "description": description}

    async def call() -> None:
        page = head("application/json", f"{status} X") + encode(answer)
        async with serving(lambda _: page) as (url, _):
            with pytest.raises(DeliveryError):
                await send_to_telegram(url)

    asyncio.run(call())


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_file_for_slack_goes_nowhere_else(status: int) -> None:
    async with serving(lambda _: head()) as (foreign, other):
        led = head("text/html", f"{status} X", f"Location: {foreign}/")
        async with serving(lambda _: led) as (url, _):
            wire = SlackWire("xoxb-1", f"{url}/")
            with pytest.raises(Unsent):
                await wire.upload(f"{url}/upload", BytesIO(b"of a person"))
            await wire.close()
    assert other.asked == 0
