"""A model server on this machine is found on its usual port, and nothing else is."""

import socket
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web

from agent_core.messages import Text, user
from agent_core.models.discovery import Port, discover
from agent_core.models.port import ModelRequest
from agent_core.models.tiers import Models
from agent_core.settings import ModelSettings
from gateway.cli.probes import probe_models
from gateway.settings import Settings
from gateway.wiring import models_now
from tests.fakes.model_server import ModelServer


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    server = ModelServer()
    yield server
    await server.close()


def closed_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


async def test_the_first_chat_model_is_taken(server: ModelServer) -> None:
    server.models = ["nomic-embed-text", "bge-m3:latest", "all-minilm", "multilingual-e5-large"]
    server.models += ["llama"]
    port = int((await server.start()).rpartition(":")[2])
    found = await discover(ports=(Port("ollama", closed_port()), Port("lmstudio", port)))
    assert found
    assert (found.name, found.tier_models.pro) == ("lmstudio", "llama")
    models = Models(ModelSettings.read({}).with_provider(found))
    assert not models.demo
    assert models.describe("flash") == "lmstudio/llama"
    model, name = models.pick("max")
    reply = await model.complete(
        ModelRequest(model=name, system="", messages=(user("hi"),)), lambda _: None
    )
    assert reply.parts == (Text(text="ack hi"),)
    await models.close()


async def test_no_model_is_nothing(server: ModelServer) -> None:
    server.models = []
    port = int((await server.start()).rpartition(":")[2])
    assert await discover(ports=(Port("ollama", port),)) is None


@pytest.mark.parametrize(
    ("status", "text"), [(200, "<html>"), (200, '{"data": {}}'), (404, "{}"), (302, "")]
)
async def test_other_servers_are_left_alone(status: int, text: str) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=text, headers={"Location": "/elsewhere"})

    app = web.Application()
    app.router.add_get("/v1/models", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = int(runner.addresses[0][1])
    assert await discover(ports=(Port("llamacpp", port),)) is None
    await runner.cleanup()


async def test_a_port_that_says_nothing_costs_little() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = int(silent.getsockname()[1])
        assert await discover(ports=(Port("vllm", port),)) is None


async def test_doctor_asks_the_one_that_is_found(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.models = ["llama"]
    port = int((await server.start()).rpartition(":")[2])
    monkeypatch.setattr(models_now, "discover", partial(discover, ports=(Port("vllm", port),)))
    settings = Settings.read({"TURNKEEPER_HOME": str(tmp_path)}, tmp_path)
    (found, *_) = await probe_models(await models_now.find_models(settings))
    assert (found.mark, found.text) == ("ok", "vllm/llama (MAX, PRO, FLASH) answers")
    off = Settings.read(
        {"TURNKEEPER_HOME": str(tmp_path), "LOCAL_MODEL_DISCOVERY": "off"}, tmp_path
    )
    (found, *_) = await probe_models(await models_now.find_models(off))
    assert "demo model" in found.text
