"""How much a model holds is asked of its server: each kind of server, over HTTP."""

import json
from collections.abc import AsyncIterator, Callable

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from agent_core.models.tiers import Models
from agent_core.settings import ModelSettings

MODEL = "org/house-8b:q4"
Routes = dict[str, object]
"""What the server answers, by method and path."""

KINDS: dict[str, tuple[Routes, int]] = {
    "vLLM": ({"GET /v1/models": {"data": [{"id": MODEL, "max_model_len": 8192}]}}, 8192),
    "Mistral": ({"GET /v1/models": {"data": [{"id": MODEL, "max_context_length": 8192}]}}, 8192),
    "Together": ({"GET /v1/models": [{"id": MODEL, "context_length": 8192}]}, 8192),
    "in quotes": ({"GET /v1/models": {"data": [{"id": MODEL, "context_length": "8192"}]}}, 8192),
    "the next field": (
        {"GET /v1/models": {"data": [{"id": MODEL, "max_model_len": 10**18, "context_length": 9}]}},
        9,
    ),
    "OpenRouter": (
        {
            "GET /v1/models": {
                "data": [
                    {"id": "other", "context_length": 1},
                    {"id": MODEL, "context_length": 65536},
                ]
            }
        },
        65536,
    ),
    "llama.cpp": (
        {
            "GET /v1/models": {"data": [{"id": MODEL, "meta": {"n_ctx_train": 131072}}]},
            "GET /props": {"default_generation_settings": {"n_ctx": 4096}},
        },
        4096,
    ),
    "LM Studio, loaded": (
        {
            "GET /v1/models": {"data": [{"id": MODEL}]},
            "GET /api/v0/models": {
                "data": [{"id": MODEL, "max_context_length": 131072, "loaded_context_length": 4096}]
            },
        },
        4096,
    ),
    "Ollama, loaded": (
        {
            "GET /v1/models": {"data": [{"id": MODEL, "owned_by": "library"}]},
            "GET /api/ps": {"models": [{"name": MODEL, "context_length": 4096}]},
            "POST /api/show": {"model_info": {"llama.context_length": 131072}},
        },
        4096,
    ),
    "Ollama, not loaded": (
        {
            "GET /v1/models": {"data": [{"id": MODEL}]},
            "GET /api/ps": {"models": []},
            "POST /api/show": {"model_info": {"llama.context_length": 40960}},
        },
        40960,
    ),
    "nothing": ({"GET /v1/models": {"data": [{"id": MODEL}]}}, 128_000),
    "no list": ({}, 128_000),
}
ODD = [
    {"data": 7},
    {"data": [7, None, {"id": MODEL, "max_model_len": True}]},
    {"data": [{"id": MODEL, "max_model_len": 10**18, "context_length": 1e30}]},
    {"data": [{"id": MODEL, "max_model_len": "9" * 30, "context_length": None}]},
    {"data": [{"id": MODEL, "max_model_len": 0, "context_length": "0"}]},
    {"data": [{"id": MODEL, "max_model_len": -1, "context_length": "many"}]},
    [],
    "no JSON at all",
]


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Routes], object]]:
    servers = []

    async def start(routes: Routes) -> str:
        async def answer(request: web.Request) -> web.Response:
            found = routes.get(f"{request.method} {request.path}")
            if found is None:
                return web.json_response({"error": "no such page"}, status=404)
            text = found if isinstance(found, str) else json.dumps(found)
            return web.Response(text=text, content_type="application/json")

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", answer)
        server = TestServer(app)
        await server.start_server()
        servers.append(server)
        return f"http://127.0.0.1:{server.port}/v1"

    yield start
    for server in servers:
        await server.close()


def known_by(url: str, **more: str) -> Models:
    env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": url, "MAX_MODEL": f"openai/{MODEL}"}
    env |= {"PRO_MODEL": f"openai/{MODEL}", "FLASH_MODEL": f"openai/{MODEL}"}
    return Models(ModelSettings.read(env | more))


@pytest.mark.parametrize("kind", KINDS)
async def test_each_kind_of_server_is_understood(serve: Callable, kind: str) -> None:
    routes, held = KINDS[kind]
    models = known_by(await serve(routes))
    assert await models.learn_windows() == (kind == "Ollama, not loaded")
    assert models.catalog.window("openai", MODEL) == held


@pytest.mark.parametrize("said", ODD)
async def test_odd_answers_say_nothing(serve: Callable, said: object) -> None:
    pages = ("/v1/models", "/props", "/api/v0/models", "/api/ps")
    models = known_by(await serve({f"GET {page}": said for page in pages}))
    assert not await models.learn_windows()
    assert models.catalog.window("openai", MODEL) == 128_000


async def test_a_server_that_is_not_there_costs_nothing() -> None:
    models = known_by("http://127.0.0.1:1/v1")
    assert not await models.learn_windows()


async def test_a_model_that_was_loaded_since_is_known_better(serve: Callable) -> None:
    routes = dict(KINDS["Ollama, not loaded"][0])
    models = known_by(await serve(routes))
    assert await models.learn_windows()
    routes["GET /api/ps"] = {"models": [{"model": MODEL, "context_length": 2048}]}
    assert not await models.learn_windows()
    assert models.catalog.window("openai", MODEL) == 2048


async def test_what_is_set_comes_first_and_nobody_is_asked(serve: Callable) -> None:
    windows = json.dumps({f"openai/{MODEL}": 9000})
    models = known_by(await serve(KINDS["vLLM"][0]), MODEL_WINDOWS=windows)
    await models.learn_windows()
    assert models.catalog.window("openai", MODEL) == 9000


async def test_anthropic_says_it_of_each_model(serve: Callable) -> None:
    about = {"GET /v1/models/claude-next": {"id": "claude-next", "max_input_tokens": 333_000}}
    url = (await serve(about)).removesuffix("/v1")
    env = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url}
    models = Models(ModelSettings.read(env | {"PRO_MODEL": "anthropic/claude-next"}))
    await models.learn_windows()
    assert models.catalog.window("anthropic", "claude-next") == 333_000
