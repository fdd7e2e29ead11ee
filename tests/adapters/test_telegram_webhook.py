"""Receiving by webhook: who may call it, what it takes, and when it says 200."""

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from adapters.telegram import receive
from adapters.telegram.adapter import TelegramAdapter
from gateway import clock
from tests.adapters.telegram_rig import Store, running
from tests.fakes.telegram_server import TelegramServer


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        yield server
        assert server.violations == []


SECRET = "s3cret_-"
HEADERS = {receive.SECRET_HEADER: SECRET}


@pytest.mark.parametrize(
    "setting",
    [("http://x", ""), ("", "s"), ("http://x", "not allowed!")],
)
def test_a_webhook_needs_a_good_secret(setting: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="webhook"):
        TelegramAdapter("1:A", "http://127.0.0.1:1", *setting)


@asynccontextmanager
async def hooked(
    server: TelegramServer, store: Store, adapters: list[TelegramAdapter] | None = None
) -> AsyncIterator[str]:
    """A running adapter behind an HTTP server; the webhook's URL. `adapters` gets it too."""
    app = web.Application()
    runner = web.AppRunner(app)
    port_holder = TelegramAdapter(server.token, server.base_url, "http://x", SECRET)
    path = port_holder.routes[0]
    assert isinstance(path, web.RouteDef)
    adapters = [] if adapters is None else adapters

    async def serve(request: web.Request) -> web.StreamResponse:
        (route,) = adapters[0].routes
        assert isinstance(route, web.RouteDef)
        answer = await route.handler(request)
        assert isinstance(answer, web.StreamResponse)
        return answer

    app.router.add_route(path.method, path.path, serve)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}{path.path}"
    adapters.append(TelegramAdapter(server.token, server.base_url, url, SECRET))
    try:
        async with running(adapters[0], store):
            await server.wait(lambda: server.webhook is not None)
            yield url
    finally:
        await runner.cleanup()


async def test_webhook_updates_are_answered_once_stored(server: TelegramServer) -> None:
    store = Store()
    store.failures = 2
    async with hooked(server, store):
        assert server.webhook and server.webhook["secret_token"] == SECRET
        server.say(7, "one")
        server.say(7, "two")
        await store.holds(2)
    assert store.texts == ["one", "two"]
    assert not server.made("getUpdates")


async def test_webhook_refusals(server: TelegramServer) -> None:
    store = Store()
    body = json.dumps({"update_id": 1, "message": {"text": "x"}})
    async with hooked(server, store) as url, aiohttp.ClientSession() as http:

        async def post(data: object, headers: dict[str, str] = HEADERS) -> int:
            async with http.post(url, data=data, headers=headers) as answer:
                return answer.status

        async def endless() -> AsyncIterator[bytes]:
            for _ in range(40):
                yield b"x" * (1 << 16)

        assert await post(body, {}) == 401
        assert await post(body, {receive.SECRET_HEADER: "é" * 8}) == 401
        assert await post(io.BytesIO(b"x" * (2 << 20))) == 413
        assert await post(endless()) == 413
        assert await post(b"\xff\xfe") == 400
        assert await post(b"[" * 100_000) == 400
        assert await post(b"[1]") == 400
        assert await post(body) == 200
        async with http.get(url) as answer:
            assert answer.status == 405
    assert store.kept == []


async def test_a_secret_is_changed_without_a_gap(
    server: TelegramServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, adapters = Store(), list[TelegramAdapter]()
    async with hooked(server, store, adapters) as url, aiohttp.ClientSession() as http:

        async def post(secret: str, number: int) -> int:
            body = json.dumps({"update_id": number})
            async with http.post(url, data=body, headers={receive.SECRET_HEADER: secret}) as answer:
                return answer.status

        server.fail("setWebhook", 500)
        adapters[0].change_webhook(url, "another")
        assert [await post(SECRET, 1), await post("another", 2), await post("x", 3)] == [
            200,
            200,
            401,
        ]
        await server.wait(lambda: (server.webhook or {}).get("secret_token") == "another")
        server.say(7, "with the new one")
        await store.holds(1)
        later = clock.monotonic() + receive.OLD_SECRET + 1
        monkeypatch.setattr(clock, "monotonic", lambda: later)
        assert [await post(SECRET, 4), await post("another", 5)] == [401, 200]


async def test_a_webhook_that_is_not_reached_is_no_contact(
    server: TelegramServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(receive, "CHECK_WEBHOOK", 0.05)
    server.unreached = "Connection refused"
    server.say(7, "is anybody there?")
    store, adapters = Store(), list[TelegramAdapter]()
    async with hooked(server, store, adapters):
        await server.wait(lambda: len(server.made("getWebhookInfo")) >= 3)
        assert not adapters[0].last_contact, "it is set, and deaf"
        warned = [one for one in caplog.records if one.message == "telegram_webhook_unreached"]
        assert (warned[0].waiting, warned[0].why) == (1, "Connection refused")  # type: ignore[attr-defined]
        server.reach()
        await store.holds(1)
        assert adapters[0].last_contact
        asked = len(server.made("getWebhookInfo"))
        before = adapters[0].last_contact
        await server.wait(lambda: len(server.made("getWebhookInfo")) >= asked + 2)
        assert adapters[0].last_contact > before, "nothing waits"


def test_a_webhook_is_changed_to_another_one_only() -> None:
    hooked, polling = TelegramAdapter("1:A", "", "http://x", SECRET), TelegramAdapter("1:A")
    for adapter, url, secret in (
        (polling, "http://x", "s"),
        (hooked, "", ""),
        (hooked, "http://x", "not allowed!"),
    ):
        with pytest.raises(ValueError, match="webhook"):
            adapter.change_webhook(url, secret)
