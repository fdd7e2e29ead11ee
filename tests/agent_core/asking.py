"""Short ways to say what the model tests ask."""

import pytest

from agent_core.errors import ModelFailed
from agent_core.messages import Message, Part, ToolResult, user
from agent_core.models.port import Delta, Model, ModelRequest, ToolSpec
from tests.fakes.model_server import Json

KEY = "sk-test-1234567890abcdef"
TOOL = ToolSpec(name="look", description="Looks.", parameters={"type": "object", "properties": {}})


def ask(*messages: Message, **more: object) -> ModelRequest:
    settings: Json = {"model": "m", "system": "Be short.", "messages": messages or (user("hi"),)}
    return ModelRequest(**(settings | more))


def tool(call_id: str, content: str = "seen", error: bool = False) -> Message:
    result = ToolResult(call_id=call_id, name="look", content=content, error=error)
    return Message(role="tool", parts=(result,))


def assistant(*parts: Part) -> Message:
    return Message(role="assistant", parts=parts)


def ignore(_: Delta) -> None:
    pass


async def failure(model: Model, request: ModelRequest | None = None) -> ModelFailed:
    """How `model` fails; no key may be in the text."""
    with pytest.raises(ModelFailed) as caught:
        await model.complete(request or ask(), ignore)
    assert KEY not in str(caught.value)
    return caught.value
