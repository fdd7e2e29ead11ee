"""A conversation goes on with another model, whatever ids and names its calls have."""

import json
import re
from collections.abc import Iterator

import pytest

from agent_core.messages import Message, ToolCall, ToolResult, user
from agent_core.models.anthropic_messages import AnthropicMessages
from agent_core.models.openai_chat import OpenAIChat
from agent_core.models.openai_responses import OpenAIResponses
from agent_core.models.wire import fit_calls
from agent_core.settings import Endpoint
from tests.agent_core.asking import KEY, ask, assistant, ignore
from tests.fakes.model_server import ModelServer

IDS = ["functions.look:0", "a b/c\n", "é" * 30, "x" * 51, "call_1", "AbCdEf123", "toolu_01x", "ü"]
NAMES = ["look", "multi_tool_use.parallel", "look<|channel|>commentary", "my tool", "x" * 90, "é"]
PLAIN, SHORT = re.compile(r"[A-Za-z0-9_-]{1,40}"), re.compile(r"[A-Za-z0-9]{9}")
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def converse() -> tuple[Message, ...]:
    """Calls with all ids, the last one without its result."""
    names = [NAMES[n % len(NAMES)] for n in range(len(IDS))]
    calls = [ToolCall(id=one, name=n, arguments="{}") for one, n in zip(IDS, names, strict=True)]
    results = [ToolResult(call_id=call.id, name=call.name, content="seen") for call in calls[:-1]]
    return (user("hi"), assistant(*calls), Message(role="tool", parts=tuple(results)), user("on"))


def find_values(value: object, *names: str) -> Iterator[str]:
    """Yield the texts in all fields of these names."""
    if isinstance(value, dict):
        yield from (one for name, one in value.items() if name in names and isinstance(one, str))
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from find_values(one, *names)


@pytest.mark.parametrize(
    ("model", "own", "form"),
    [("claude-x", False, PLAIN), ("gpt-x", True, PLAIN), ("magistral-small", False, SHORT)],
)
def test_ids_and_names_are_in_the_form_that_the_model_takes(
    model: str, own: bool, form: re.Pattern[str]
) -> None:
    request = ask(*converse(), model=model)
    parts = [part for message in fit_calls(request, own).messages for part in message.parts]
    calls = [part for part in parts if isinstance(part, ToolCall)]
    ids = [call.id for call in calls]
    assert all(map(form.fullmatch, ids)) and len(set(ids)) == len(IDS)
    assert [part.call_id for part in parts if isinstance(part, ToolResult)] == ids[:-1]
    assert all(NAME.fullmatch(call.name) for call in calls)
    kept = [one for one in IDS if form.fullmatch(one)]
    assert [one for one in ids if one in IDS] == kept != []


def test_others_get_them_back_as_they_gave_them() -> None:
    request = ask(*converse(), model="kimi-k3")
    assert fit_calls(request, False) is request


@pytest.mark.parametrize("wire", [OpenAIChat, OpenAIResponses, AnthropicMessages])
async def test_each_protocol_sends_them_so(wire: type) -> None:
    server = ModelServer(key=KEY)
    base = await server.start()
    base = base if wire is AnthropicMessages else f"{base}/v1"
    model = wire(Endpoint(provider="p", api_key=KEY, base_url=base))
    await model.complete(ask(*converse(), model="claude-x"), ignore)
    await model.close()
    await server.close()
    body = json.loads(server.requests[0].raw)
    body.pop("tools", None)
    told = list(find_values(body, "id", "call_id", "tool_call_id", "tool_use_id"))
    assert len(told) >= 2 * len(IDS) and all(map(PLAIN.fullmatch, told))
    assert all(map(NAME.fullmatch, find_values(body, "name")))
