"""A scripted model whose answers come over the wire: the product's own client of a provider, and a
server on loopback that speaks as that provider does and refuses what it would refuse.

Each shape is what a server really sends. Chat completions differ from server to server, as captures in
public repositories show: llama-server (g0t4/ask-openai.nvim, lua/ask-openai/tools/notes/
llama-server-tool-call.md), vLLM (the same, its tests of parsing), DeepSeek (opensolon/solon, solon-ai's
DeepSeek.md; CaiZongyuan/agentscope-nextjs-ai-demo, example-completions.md), and servers that repeat
an empty id and name in each piece, as Qwen's does. The others follow the SDKs' types.
"""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import msgspec
from aiohttp import web
from msgspec.structs import replace

from agent_core import ambient
from agent_core.messages import Text, Thinking, ToolCall
from agent_core.models.catalog import Catalog
from agent_core.models.endpoint import Endpoint
from agent_core.models.port import Model, ModelReply, ModelRequest, OnDelta
from agent_core.models.prices.table import make_tables
from agent_core.models.providers import ApiMode
from agent_core.models.tiers import _connect
from tests.fakes.model_dialect import require
from tests.fakes.model_openai import OpenAI
from tests.fakes.model_server import (
    Calls,
    Cut,
    Empty,
    Ends,
    Json,
    ModelServer,
    Ollama,
    Say,
    Step,
    Think,
)
from tests.fakes.model_steps import Call

THOUGHT = "Let me think."
Spoil = Callable[[ModelReply], Step]
"""What the server sends in place of an answer."""


class Instant(ambient.SystemClock):
    """Nobody waits between two tries."""

    async def wait(self, seconds: float) -> None:
        return


class LlamaServer(OpenAI):
    """The first piece has no content, arguments come in small pieces, the last one has timings."""

    def lines(self, body: Json, step: Step, number: int) -> list[str]:
        return _rewrite(super().lines(body, step, number), self._change)

    def _change(self, chunk: Json) -> list[Json]:
        for choice in chunk["choices"]:
            delta = choice["delta"]
            if delta.get("role"):
                delta["content"] = None
            if choice["finish_reason"]:
                chunk["timings"] = {"prompt_n": 1, "predicted_n": 2, "predicted_ms": 3.5}
            if (calls := delta.get("tool_calls")) and "id" not in calls[0]:
                return _split(chunk, calls[0], 4)
        return [chunk | {"system_fingerprint": "b6097-9515c613"}]


class Vllm(OpenAI):
    """A call begins without arguments and without their field; each choice has a stop_reason."""

    def lines(self, body: Json, step: Step, number: int) -> list[str]:
        return _rewrite(super().lines(body, step, number), self._change)

    def _change(self, chunk: Json) -> list[Json]:
        for choice in chunk["choices"]:
            choice |= {"logprobs": None, "stop_reason": None}
            for call in choice["delta"].get("tool_calls", ()):
                if "id" in call:
                    call["id"] = f"chatcmpl-tool-{call['id']}"
                    del call["function"]["arguments"]
        return [chunk]


class DeepSeek(OpenAI):
    """Reasoning beside empty contents, usage in the last piece; reasoning has to come back."""

    def check(self, body: Json) -> None:
        super().check(body)
        for message in body["messages"]:
            if message.get("tool_calls"):
                thought = message.get("reasoning_content")
                require(thought, "The reasoning_content in the thinking mode must be passed back")

    def lines(self, body: Json, step: Step, number: int) -> list[str]:
        thinks = step if isinstance(step, Think) else Think(THOUGHT, then=step)  # type: ignore[arg-type]
        lines = super().lines(body, thinks, number)
        usage = self._usage(body, step)
        hit = {"prompt_cache_hit_tokens": 0, "prompt_cache_miss_tokens": usage["prompt_tokens"]}
        made = _rewrite(lines, self._change)
        last = {"choices": [], "usage": usage | hit, "object": "chat.completion.chunk"}
        return [*made[:-1], f"data: {json.dumps(last)}", made[-1]]

    def _change(self, chunk: Json) -> list[Json]:
        if not chunk["choices"]:
            return []  # its usage is told with the last piece
        for choice in chunk["choices"]:
            delta = choice["delta"]
            if "reasoning_content" in delta:
                delta["content"] = None
            elif "content" in delta:
                delta["reasoning_content"] = None
        return [chunk]


class Qwen(OpenAI):
    """Each piece of a call has an empty id and name again, and contents that are empty."""

    def lines(self, body: Json, step: Step, number: int) -> list[str]:
        return _rewrite(super().lines(body, step, number), self._change)

    def _change(self, chunk: Json) -> list[Json]:
        for choice in chunk["choices"]:
            for call in choice["delta"].get("tool_calls", ()):
                choice["delta"]["content"] = ""
                if "id" not in call:
                    call |= {"id": "", "type": "function"}
                    call["function"]["name"] = ""
        return [chunk | {"usage": chunk.get("usage")}]


def _rewrite(lines: list[str], change: Callable[[Json], list[Json]]) -> list[str]:
    made: list[str] = []
    for line in lines:
        text = line.removeprefix("data: ")
        if text == "[DONE]" or not text.startswith("{"):
            made.append(line)
        else:
            made += (f"data: {json.dumps(one)}" for one in change(json.loads(text)))
    return made


def _split(chunk: Json, call: Json, size: int) -> list[Json]:
    """The piece in pieces of so many characters."""
    text = call["function"]["arguments"]
    made = []
    for start in range(0, len(text), size):
        function = {"arguments": text[start : start + size]}
        delta = {"tool_calls": [{"index": call["index"], "function": function}]}
        made.append(chunk | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How one provider is spoken to. `cannot`: faults that its wire cannot carry."""

    mode: ApiMode
    path: str = "/v1"
    dialect: type[OpenAI] = OpenAI
    ollama: Ollama | None = None
    cannot: frozenset[str] = frozenset()


OBJECTS = frozenset({"cut call", "wrong arguments"})
"""Arguments are an object there, and never half of one."""
SHAPES: dict[str, Shape] = {
    "OpenAI chat": Shape(mode="chat_completions"),
    "OpenAI responses": Shape(mode="codex_responses"),
    "Anthropic": Shape(mode="anthropic_messages", path=""),
    "Gemini": Shape(mode="generate_content", path="", cannot=frozenset({"wrong arguments"})),
    "Ollama": Shape(
        mode="ollama_chat", path="", ollama=Ollama(given=131_072), cannot=OBJECTS | {"refusal"}
    ),
    "llama.cpp": Shape(mode="chat_completions", dialect=LlamaServer),
    "vLLM": Shape(mode="chat_completions", dialect=Vllm),
    "DeepSeek": Shape(mode="chat_completions", dialect=DeepSeek),
    "Qwen": Shape(mode="chat_completions", dialect=Qwen),
}


class ShapedServer(ModelServer):
    """Its chat completions are those of one server."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self._shape = shape
        self.ollama = shape.ollama

    async def _openai(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, self._shape.dialect(self.extra_fields))


class Mistaken(Model, Protocol):
    """A model that says what it would have said without its mistake."""

    meant: ModelReply | None


class Wired:
    """`inner`'s answers, over the wire. `spoil`: how the first one comes, which the server then says
    again, if it is asked again."""

    def __init__(
        self, inner: Mistaken, server: ModelServer, client: Model, spoil: Spoil | None = None
    ) -> None:
        self.provider = client.provider
        self._inner, self._server, self._client = inner, server, client
        self._spoil = spoil

    async def complete(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        meant = await self._inner.complete(request, lambda delta: None)
        self._server.steps.clear()
        if self._spoil is not None:
            self._server.script(self._spoil(meant))
            self._spoil = None
        self._server.script(to_step(meant))
        if self._inner.meant is not None:  # a client that asks again by itself
            self._server.script(to_step(self._inner.meant))
        came = await self._client.complete(replace(request, model="fake-model"), on_delta)
        return replace(came, usage=meant.usage)

    async def close(self) -> None: ...


def to_step(reply: ModelReply) -> Step:
    """What the server does to say this."""
    text = "".join(part.text for part in reply.parts if isinstance(part, Text))
    calls = [part for part in reply.parts if isinstance(part, ToolCall)]
    thought = next((part for part in reply.parts if isinstance(part, Thinking)), None)
    step: Say | Calls | Empty = Say(text) if text else Empty()
    if calls:
        made = [Call(call.name, call.arguments, id=call.id) for call in calls]
        first = Call(calls[0].name, calls[0].arguments, id=calls[0].id, text=text)
        step = Calls([first, *made[1:]])
    spoken: Step = step
    if thought is not None and not isinstance(step, Empty):
        spoken = Think(thought.text, then=step)
    if reply.finish == "length" or (calls and not _is_whole(calls[0].arguments)):
        only = made[0] if calls else spoken
        return Ends(only, "length")
    return Ends(Say("no"), "refused") if reply.finish == "refused" else spoken


def _is_whole(arguments: str) -> bool:
    try:
        msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return False
    return True


def break_off(reply: ModelReply) -> Step:
    """The connection is lost in the middle of the words."""
    text = "".join(part.text for part in reply.parts if isinstance(part, Text))
    return Cut(after_chars=max(1, len(text) // 2), text=text or "I will look")


def say_nothing(reply: ModelReply) -> Step:
    """An answer without anything in it."""
    return Empty()


@asynccontextmanager
async def connected(shape: Shape) -> AsyncIterator[tuple[ModelServer, Model]]:
    """A server of this shape, and the product's client of it."""
    server = ShapedServer(shape)
    url = await server.start()
    endpoint = Endpoint(
        provider="bench",
        base_url=f"{url}{shape.path}",
        api_key="key-of-the-bench",
        api_mode=shape.mode,
    )
    client = _connect(endpoint, Catalog({}, {}, make_tables("")))
    before = ambient._clock
    ambient.use(Instant())
    try:
        yield server, client
    finally:
        ambient.use(before)
        await client.close()
        await server.close()
