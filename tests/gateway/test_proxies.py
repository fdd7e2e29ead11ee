"""Behind a company's proxy: platforms and models are reached by it, this machine is not."""

import signal
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import httpx2
import pytest

from agent_core.config.proxies import find_proxy
from agent_core.models.streamed_http import StreamingClient
from gateway.settings import exempt_loopback
from tests.fakes.forward_proxy import ForwardProxy, proxying
from tests.fakes.model_server import ModelServer
from tests.fakes.telegram_server import TelegramServer
from tests.gateway.process import KEY, PERSON, TOKEN, World
from tests.stories.discord_slack_process import ANN, DM, PRIVATE, SOON, THREAD, Chats

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Chats]:
    model = ModelServer(KEY)
    made = Chats(tmp_path, model)
    made.slowly = False
    made.telegram = TelegramServer(token=TOKEN)
    made.model_url = await model.start()
    async with made.discord, made.slack, made.telegram:
        try:
            yield made
        finally:
            for run in made.runs:
                await run.end(signal.SIGKILL)
            await model.close()


@pytest.fixture
async def proxy() -> AsyncIterator[ForwardProxy]:
    async with proxying() as made:
        yield made


def telegram(world: Chats) -> dict[str, str]:
    env = World.env(world)
    return {name: value for name, value in env.items() if name.startswith("TELEGRAM")}


async def answered(world: Chats) -> None:
    """A message on each platform, until each has its answer."""
    world.telegram.say(PERSON, "tell me 1")
    await world.discord.say(DM, "tell me 2", ANN)
    world.slack.say(PRIVATE, "tell me 3", thread=THREAD)
    await world.discord_shows("Number 2")
    await world.slack_shows("Number 3")
    await world.telegram.wait(
        lambda: any("Number 1" in str(one) for one in world.telegram.chats[PERSON]), SOON
    )


async def test_platforms_and_models_are_reached_by_the_proxy(
    world: Chats, proxy: ForwardProxy
) -> None:
    env = telegram(world) | world.env(**telegram(world))
    hidden = {}
    for name in (
        "TELEGRAM_API_BASE_URL", "DISCORD_API_BASE_URL", "DISCORD_GATEWAY_URL",
        "SLACK_API_BASE_URL", "OPENAI_BASE_URL",
    ):  # fmt: skip
        url = urlsplit(env[name])
        host = f"{name.lower().replace('_', '-')}.invalid"
        proxy.hosts[host] = url.port or 0
        hidden[name] = url._replace(netloc=host).geturl()
    proxy.hosts["127.0.0.1"] = urlsplit(env["SLACK_API_BASE_URL"]).port or 0
    await world.start(**telegram(world) | hidden, HTTP_PROXY=proxy.url)
    await answered(world)
    assert set(proxy.hosts) >= set(proxy.asked) >= set(proxy.hosts) - {"127.0.0.1"}
    code, said = await world.command("doctor", **telegram(world) | hidden, HTTP_PROXY=proxy.url)
    assert "cannot be reached" not in said and "wrong" not in said, said


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "ALL_PROXY"])
async def test_what_is_on_this_machine_is_reached_without_it(
    world: Chats, proxy: ForwardProxy, name: str
) -> None:
    named = {name: proxy.url, "NO_PROXY": "example.org"}
    await world.start(**telegram(world) | named)
    await answered(world)
    _, said = await world.command("doctor", **telegram(world) | named)
    assert "wrong" not in said and proxy.asked == [], said


SCHEMES = (
    "http://p:1",
    "https://p:1",
    "p:1",
    "http://u:secret@p:1",
    "socks5://p:1",
    "socks5h://p:1",
    "",
)


@pytest.mark.parametrize("beyond", ["", "*", "api.example", ".example", "other.example", "example"])
@pytest.mark.parametrize("named", SCHEMES)
@pytest.mark.parametrize("name", ["https_proxy", "HTTPS_PROXY", "ALL_PROXY"])
async def test_a_proxy_is_found_as_its_variables_say(
    monkeypatch: pytest.MonkeyPatch, name: str, named: str, beyond: str
) -> None:
    for one in PROXIES:
        monkeypatch.delenv(one, raising=False)
        monkeypatch.delenv(one.upper(), raising=False)
    monkeypatch.setenv(name, named)
    monkeypatch.setenv("NO_PROXY", beyond)
    exempt_loopback()
    used = not named.startswith("socks") and bool(named)
    used = used and beyond not in ("*", "api.example", ".example", "example")
    wanted = (named if "://" in named else f"http://{named}") if used else None
    assert find_proxy("https://api.example/bot") == wanted
    for local in ("localhost", "127.0.0.1"):
        assert find_proxy(f"https://{local}:8443/") is None
    client = StreamingClient("https://api.example/v1", httpx2.Timeout(1))
    with monkeypatch.context() as patch:
        patch.setattr(aiohttp, "ClientSession", lambda **_: None)
        client._open()
    assert client._proxy == wanted
