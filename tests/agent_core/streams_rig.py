"""Answers as bytes, in the form of each protocol, and what the clients make of them."""

import json
from collections.abc import Iterable

from agent_core.errors import ModelFailed
from agent_core.messages import text_of
from agent_core.models.anthropic_messages import AnthropicMessages
from agent_core.models.google.client import Gemini
from agent_core.models.openai_chat import OpenAIChat
from agent_core.models.openai_responses import OpenAIResponses
from agent_core.models.port import ModelReply
from agent_core.settings import Endpoint
from tests.agent_core.asking import ask, assistant, failure, ignore
from tests.fakes.model_steps import Json
from tests.fakes.raw_server import serving

WIRES = {
    "chat": OpenAIChat,
    "responses": OpenAIResponses,
    "anthropic": AnthropicMessages,
    "gemini": Gemini,
}
ITEM: Json = {"type": "message", "content": [{"type": "output_text", "text": "hello"}]}
BLOCK: Json = {"type": "text", "text": ""}


def chat(delta: object, finish: str | None = None, **more: object) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"model": "m", "choices": [choice]} | more


def events(wire: str, usage: object = None) -> list[Json]:
    """The events of an answer that says hello."""
    match wire:
        case "chat":
            return [
                chat({"content": "hel"}),
                chat({"content": "lo"}),
                chat({}, "stop", usage=usage),
            ]
        case "responses":
            ended = {"status": "completed", "model": "m", "output": [ITEM], "usage": usage}
            done = {"type": "response.output_item.done", "output_index": 0, "item": ITEM}
            return [done, {"type": "response.completed", "response": ended}]
        case "anthropic":
            said = {"type": "text_delta", "text": "hello"}
            return [
                {"type": "message_start", "message": {"model": "m", "usage": usage}},
                {"type": "content_block_start", "index": 0, "content_block": BLOCK},
                {"type": "content_block_delta", "index": 0, "delta": said},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
                {"type": "message_stop"},
            ]
    parts = {"parts": [{"text": "hello"}], "role": "model"}
    return [{"candidates": [{"content": parts, "finishReason": "STOP"}]}]


def write(lines: Iterable[object], between: str = "") -> bytes:
    told = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    return "".join(f"data: {line}\n\n{between}" for line in told).encode()


async def read(wire: str, answer: bytes | list[bytes]) -> ModelReply:
    """The answer that a client makes of these bytes."""
    async with serving(lambda n: answer) as (base, _):
        model = connect(wire, base)
        try:
            return await model.complete(ask(), ignore)
        finally:
            await model.close()


async def fail(wire: str, answer: bytes) -> ModelFailed:
    """How a client fails that is given these bytes."""
    async with serving(lambda n: answer) as (base, _):
        model = connect(wire, base)
        failed = await failure(model)
        await model.close()
    return failed


def connect(wire: str, base: str, retries: int = 0) -> OpenAIChat:
    made: OpenAIChat = WIRES[wire](
        Endpoint(provider="p", api_key="k", base_url=base, retries=retries)
    )
    return made


def words(reply: ModelReply) -> str:
    return text_of(assistant(*reply.parts))
