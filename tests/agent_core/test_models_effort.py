"""How much a tier's model reasons, over the wire of every protocol."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from agent_core.agent import Agent
from agent_core.config.declaration import SettingsError
from agent_core.messages import Text
from agent_core.models.providers import EFFORTS
from agent_core.models.tiers import Models
from agent_core.settings import ModelSettings
from tests.agent_core.asking import KEY, TOOL, ask, ignore
from tests.fakes.model_server import Fail, Json, ModelServer, Say


@dataclass(frozen=True)
class Spoken:
    """A protocol: what chooses it, where its requests go, and how they name an effort."""

    provider: str
    env: dict[str, str]
    base: str
    path: tuple[str, ...]
    param: str
    words: dict[str, str]

    def find(self, body: Json) -> object:
        found: object = body
        for name in self.path:
            found = found.get(name) if isinstance(found, dict) else None
        return found


SAME = {effort: effort for effort in EFFORTS}
PROTOCOLS = {
    "responses": Spoken(
        "openai",
        {"OPENAI_API_MODE": "codex_responses"},
        "/v1",
        ("reasoning", "effort"),
        "reasoning.effort",
        SAME,
    ),
    "chat": Spoken("openai", {}, "/v1", ("reasoning_effort",), "reasoning_effort", SAME),
    "anthropic": Spoken(
        "anthropic",
        {},
        "",
        ("output_config", "effort"),
        "output_config.effort",
        SAME | {"minimal": "low", "none": ""},
    ),
    "gemini": Spoken(
        "gemini",
        {"GEMINI_API_MODE": "generate_content"},
        "",
        ("generationConfig", "thinkingConfig", "thinkingLevel"),
        "thinking_level",
        {"none": "MINIMAL", "max": "XHIGH"}
        | {one: one.upper() for one in EFFORTS if one not in ("none", "max")},
    ),
}


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    server = ModelServer(key=KEY)
    yield server
    await server.close()


async def connect(server: ModelServer, spoken: Spoken, **more: str) -> Models:
    name = spoken.provider.upper()
    url = f"{await server.start()}{spoken.base}"
    env = {f"{name}_API_KEY": KEY, f"{name}_BASE_URL": url, **spoken.env, **more}
    return Models(ModelSettings.read(env))


async def complete(models: Models, name: str) -> str:
    model, known_as = await asyncio.to_thread(models.pick, name)
    reply = await model.complete(ask(model=known_as, tools=(TOOL,)), ignore)
    return "".join(part.text for part in reply.parts if isinstance(part, Text))


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("spoken", PROTOCOLS.values(), ids=PROTOCOLS)
async def test_a_tiers_model_reasons_as_is_set(
    server: ModelServer, spoken: Spoken, effort: str
) -> None:
    models = await connect(server, spoken, MAX_REASONING_EFFORT=effort)
    server.script(*[Say("fine")] * 3)
    known_as = models.describe("max")
    for name in ("max", known_as, "flash"):
        assert await complete(models, name) == "fine"
    sent = [spoken.find(request.body) or "" for request in server.requests]
    assert sent == [spoken.words[effort]] * 2 + [""]
    if spoken.provider == "anthropic" and effort == "none":
        assert server.requests[0].body["thinking"] == {"type": "disabled"}
    await models.close()


@pytest.mark.parametrize("spoken", PROTOCOLS.values(), ids=PROTOCOLS)
async def test_an_effort_that_a_model_does_not_know_is_left_out(
    server: ModelServer, spoken: Spoken
) -> None:
    def picky(body: Json) -> Say | Fail:
        if spoken.find(body) in (None, "", "none"):
            return Say("fine")
        about = f"Unsupported value for {spoken.param}: thinking level"
        return Fail(400, message=about, param=spoken.param)

    models = await connect(server, spoken, PRO_REASONING_EFFORT="xhigh")
    server.script(*[picky] * 3)
    assert [await complete(models, "pro") for _ in range(2)] == ["fine", "fine"]
    assert len(server.requests) == 3, "it is learnt once"
    if spoken.param == "reasoning.effort":
        assert "include" in server.requests[-1].body, "the model still reasons"
    await models.close()


def test_a_wrong_effort_is_a_clear_error() -> None:
    with pytest.raises(SettingsError, match="PRO_REASONING_EFFORT=much: use one of: none, minimal"):
        ModelSettings.read({"PRO_REASONING_EFFORT": "much"})


@pytest.mark.parametrize(
    ("base_url", "set_mode", "mode"),
    [
        ("", "", "codex_responses"),
        ("https://api.openai.com/v1/", "", "codex_responses"),
        ("https://api.openai.com/v1", "chat_completions", "chat_completions"),
        ("https://api.openai.com.evil/v1", "", "chat_completions"),
        ("http://127.0.0.1:1/api.openai.com/v1", "", "chat_completions"),
        ("http://127.0.0.1:1/v1", "", "chat_completions"),
        ("http://127.0.0.1:1/v1", "codex_responses", "codex_responses"),
    ],
)
def test_openai_itself_is_called_by_responses(base_url: str, set_mode: str, mode: str) -> None:
    env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": base_url, "OPENAI_API_MODE": set_mode}
    assert ModelSettings.read(env).endpoint("openai").api_mode == mode


@pytest.mark.parametrize("mode", ["chat_completions", "codex_responses", "anthropic_messages"])
async def test_the_constructors_mode_comes_first(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    paths = {
        "chat_completions": "/v1/chat/completions",
        "codex_responses": "/v1/responses",
        "anthropic_messages": "/v1/messages",
    }
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_MODE", "codex_responses")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{await server.start()}/v1")
    server.script(Say("hello"))
    async with await Agent.create(model="openai/m", api_mode=mode, plans=False) as agent:
        assert await agent.achat("hi") == "hello"
    assert server.requests[0].path == paths[mode]
