"""Arguments that a model wrote are sent back as an object, as the templates of local servers and
other protocols read them; otherwise one slip would end the whole conversation."""

import json
from collections.abc import Callable

import pytest

from agent_core.messages import ToolCall, user
from agent_core.models.anthropic_messages import AnthropicMessages
from agent_core.models.catalog import Catalog
from agent_core.models.google.client import Gemini
from agent_core.models.ollama.client import OllamaChat
from agent_core.models.openai_chat import OpenAIChat
from agent_core.models.openai_responses import OpenAIResponses
from agent_core.models.port import Model
from agent_core.settings import Endpoint
from tests.agent_core.asking import TOOL, ask, assistant, ignore, tool
from tests.fakes.model_server import Json, ModelServer, Ollama, Say

SENT: dict[str, tuple[Callable[[Endpoint], Model], str, Callable[[Json], object]]] = {
    "chat": (
        OpenAIChat,
        "/v1",
        lambda body: json.loads(body["messages"][2]["tool_calls"][0]["function"]["arguments"]),
    ),
    "responses": (OpenAIResponses, "/v1", lambda body: json.loads(body["input"][1]["arguments"])),
    "anthropic": (AnthropicMessages, "", lambda body: body["messages"][1]["content"][0]["input"]),
    "gemini": (
        Gemini,
        "",
        lambda body: body["contents"][1]["parts"][0]["functionCall"]["args"],
    ),
    "ollama": (
        lambda endpoint: OllamaChat(endpoint, Catalog()),
        "/v1",
        lambda body: body["messages"][2]["tool_calls"][0]["function"]["arguments"],
    ),
}
ODD = ["", " ", "{", '{"a": "b', "[1]", '"a"', "null", "7", "{'a': 1}", "a", '{"a": NaN}', "{}}"]


@pytest.mark.parametrize("given", [*ODD, "\ud83d", '{"a": 1}', "{}"])
@pytest.mark.parametrize("wire", SENT)
async def test_arguments_are_sent_back_as_an_object(wire: str, given: str) -> None:
    connect, path, find = SENT[wire]
    server = ModelServer()
    server.ollama = Ollama(given=8192)
    server.script(Say("fine"))
    base = f"{await server.start()}{path}"
    model = connect(Endpoint(provider="p", api_key="k", base_url=base, retries=0))
    call = ToolCall(id="c1", name="look", arguments=given)
    try:
        await model.complete(ask(user("hi"), assistant(call), tool("c1"), tools=(TOOL,)), ignore)
    finally:
        await model.close()
        await server.close()
    sent = find(server.requests[-1].body)
    assert isinstance(sent, dict)
    if given in ('{"a": 1}', "{}"):
        assert sent == json.loads(given)
    elif given.strip() and given != "\ud83d":
        assert given.strip("{}[]\"' ")[:1] in json.dumps(sent), "it is not lost"
