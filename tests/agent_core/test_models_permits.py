"""No request to a provider begins without the permit of the turn that asks."""

from collections.abc import AsyncIterator, Callable
from io import BytesIO
from typing import Any

import pytest

from agent_core.errors import LeaseLost
from agent_core.models.anthropic_messages import AnthropicMessages
from agent_core.models.catalog import Catalog
from agent_core.models.google.client import Gemini
from agent_core.models.ollama.client import OllamaChat
from agent_core.models.openai_chat import OpenAIChat
from agent_core.models.openai_responses import OpenAIResponses
from agent_core.models.port import Model, asker_permit
from agent_core.models.tiers import Models
from agent_core.models.transcription import Transcriber
from agent_core.scope import Scope, Turn
from agent_core.settings import Endpoint, ModelSettings
from tests.agent_core.asking import KEY, ask
from tests.agent_core.scope_rig import Crew, Disk, make
from tests.fakes.model_server import Cut, Empty, Fail, ModelServer, Ollama, Say, Step

MODELS: dict[str, Callable[[Endpoint], Model]] = {
    "/v1/chat/completions": OpenAIChat,
    "/v1/responses": OpenAIResponses,
    "/v1/messages": AnthropicMessages,
    "/v1beta/models": Gemini,
    "/api/chat": lambda endpoint: OllamaChat(endpoint, Catalog()),
}
FAILING: dict[str, Step] = {
    "out of order": Fail(500),
    "over its rate": Fail(429, retry_after=0.01),
    "cut": Cut(),
    "empty": Empty(),
}


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    server = ModelServer()
    server.ollama = Ollama(16_384, loaded=True)
    yield server
    await server.close()


class Lease:
    """Is lost after `left` permits."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.turn: Turn | None = None

    async def permit(self) -> None:
        if self.left == 0 and self.turn is not None:
            self.turn.suspend(LeaseLost())
        self.left -= 1


def turn_under(lease: Lease) -> Scope:
    lease.turn, _ = make(Disk(), Crew())
    lease.turn._permit = lease.permit
    return Scope(lease.turn)


def connect(kind: str, base: str) -> Model:
    bare = kind in ("/v1/messages", "/v1beta/models", "/api/chat")
    settings: dict[str, Any] = {"provider": "p", "api_key": KEY, "key_setting": "P_API_KEY"}
    return MODELS[kind](Endpoint(**settings, base_url=base if bare else f"{base}/v1", num_ctx=0))


@pytest.mark.pick("permits of retries", 4)
@pytest.mark.parametrize("fails", FAILING)
@pytest.mark.parametrize("kind", MODELS)
async def test_no_retry_without_a_permit(server: ModelServer, kind: str, fails: str) -> None:
    model = connect(kind, await server.start())
    server.script(FAILING[fails], Say("late"))
    scope = turn_under(Lease(2))  # the scope's own, and the first attempt's
    with pytest.raises(LeaseLost):
        await scope.model(lambda show: model.complete(ask(), show))
    assert [one.path for one in server.requests if not one.path.startswith(kind)] == []
    assert len(server.requests) == 1
    await model.close()


async def test_no_fallback_without_a_permit(server: ModelServer) -> None:
    env = {
        "OPENAI_API_KEY": "key-o1,key-o2",
        "OPENAI_BASE_URL": f"{await server.start()}/v1",
        "PRO_MODEL": "openai/big",
        "FALLBACK_PROVIDERS": "openai/other",
    }
    models = Models(ModelSettings.read(env))
    server.script(Fail(500), Say("late"))
    model, known_as = models.pick("pro")
    scope = turn_under(Lease(2))
    with pytest.raises(LeaseLost):
        await scope.model(lambda show: model.complete(ask(model=known_as), show))
    assert len(server.requests) == 1
    await models.close()


async def test_no_voice_is_heard_without_a_permit(server: ModelServer) -> None:
    async def refuse() -> None:
        raise LookupError("the session has ended")

    settings: dict[str, Any] = {"provider": "p", "api_key": KEY, "key_setting": "P_API_KEY"}
    base = f"{await server.start()}/v1"
    hearing = Transcriber(Endpoint(**settings, base_url=base, retries=0), "w")
    asker_permit.set(refuse)
    with pytest.raises(LookupError):
        await hearing.words(BytesIO(b"sound"), "note.ogg")
    assert server.heard == []
    await hearing.close()
