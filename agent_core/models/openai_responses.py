"""OpenAI's Responses API, at OpenAI or at any compatible address (`codex_responses`).

Nothing is stored there (`store: false`): each request holds the whole conversation, and reasoning
is sent back as the encrypted items received. The low-level call is that of chat completions.
"""

from collections.abc import Mapping

import msgspec

from agent_core.context.pictures import render_user_content, split_result
from agent_core.errors import ModelFailed
from agent_core.messages import (
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from agent_core.models.answers.openai_responses import MARK, ResponsesReader
from agent_core.models.answers.refused_fields import RefusedFields
from agent_core.models.openai_chat import CallRefused, ChatClient
from agent_core.models.port import ModelReply, ModelRequest, OnDelta, ToolSpec
from agent_core.models.providers import Effort
from agent_core.models.streamed_http import StreamedResponse
from agent_core.models.wire import CONTINUED, REASONING, UNANSWERED, Line, ToolSheet, fit_arguments
from agent_core.phrases import phrase
from agent_core.settings import Endpoint

LEAST_OUTPUT = 16
"""Tokens of an answer, at least: less is refused."""
OPTIONAL = (
    "prompt_cache_key",
    "max_output_tokens",
    "tool_choice",
    "instructions",
    "include",
    "reasoning",
    "store",
    "strict",
)
"""Fields that can be left out. At OpenAI `store` never is: it stores answers then."""
ENCRYPTED = ["reasoning.encrypted_content"]


class OpenAIResponses:
    """One provider of the Responses API."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.provider = endpoint.provider
        self._endpoint = endpoint
        self._line = Line(endpoint)
        self._calls = ChatClient(endpoint, self._line, "responses")
        self._tools, self._loose_tools = ToolSheet(_tool), ToolSheet(_loose_tool)
        own = self._calls.own
        self._refused = RefusedFields(tuple(f for f in OPTIONAL if f != "store" or not own))
        self._efforts: set[tuple[str, Effort | None]] = set()
        """Models, and efforts that they do not know."""

    async def complete(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        """The whole answer to `request`; raises ModelFailed."""
        return await self._line.ask(request, self._send, ResponsesReader, on_delta)

    async def close(self) -> None:
        """Close the connections."""
        await self._calls.close()

    async def _send(self, request: ModelRequest, retries: int) -> StreamedResponse:
        body = self._body(request)
        try:
            return await self._calls.post(body, retries)
        except CallRefused as error:
            if self._learn(request, self._refused.find(error.response, body)):
                return await self._send(request, retries)
            raise self._line.read_refusal(error.response) from None

    def _learn(self, request: ModelRequest, field: str) -> bool:
        """Learn that the model does not know this effort, or `field` at all. Return True if the
        request can be retried."""
        effort = (request.model, request.effort)
        if field == "reasoning" and request.effort and effort not in self._efforts:
            self._efforts.add(effort)
            return True
        return self._refused.add(request.model, field)

    def _reasons(self, model: str) -> bool:
        refused = self._refused.by_model.get(model, ())
        return "include" not in refused and "reasoning" not in refused

    def _body(self, request: ModelRequest) -> bytes:
        endpoint, refused = self._endpoint, self._refused.by_model.get(request.model, ())
        body: dict[str, object] = {"model": request.model, "stream": True, "store": False}
        if self._reasons(request.model):
            body["include"] = ENCRYPTED
            reasoning: dict[str, str] = {"summary": "auto"} if endpoint.thinking else {}
            if request.effort and (request.model, request.effort) not in self._efforts:
                reasoning["effort"] = request.effort
            if reasoning:
                body["reasoning"] = reasoning
        if request.cache_key and (
            self._calls.own if endpoint.cache_key is None else endpoint.cache_key
        ):
            body["prompt_cache_key"] = request.cache_key
        if request.tools:
            sheet = self._loose_tools if "strict" in refused else self._tools
            body["tools"] = sheet.render(request.tools)
        items = _items(request, self.provider)
        if request.system and "instructions" in refused:
            items.insert(0, {"role": "system", "content": request.system})
        elif request.system:
            body["instructions"] = request.system
        body["input"] = items
        if request.tools and request.tool_choice != "auto":
            body["tool_choice"] = request.tool_choice
        if request.max_tokens:
            most = request.max_tokens + (REASONING if self._reasons(request.model) else 0)
            body["max_output_tokens"] = max(most, LEAST_OUTPUT)
        for field in refused:
            body.pop(field, None)
        try:
            return msgspec.json.encode(body)
        except UnicodeEncodeError:
            raise ModelFailed(phrase("fault_characters"), "rejected") from None


def _tool(tool: ToolSpec) -> dict[str, object]:
    return {**_loose_tool(tool), "strict": False}


def _loose_tool(tool: ToolSpec) -> dict[str, object]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }


def _items(request: ModelRequest, provider: str) -> list[dict[str, object]]:
    """The history as items: every call is answered before the next message begins."""
    out: list[dict[str, object]] = []
    waiting: dict[str, None] = {}
    for message in request.messages:
        if message.role == "tool":
            for part in message.parts:
                if isinstance(part, ToolResult):
                    waiting.pop(part.call_id, None)
                    out.append(_output(part.call_id, _write_result(part, request.pictures)))
            continue
        out.extend(_output(call_id, UNANSWERED) for call_id in waiting)
        waiting.clear()
        if message.role == "user":
            out.append(
                {
                    "role": "user",
                    "content": render_user_content(message, request.pictures, (_words, _picture)),
                }
            )
            continue
        for index, part in enumerate(message.parts):
            item = _item(part, message.parts[index + 1 :], provider)
            if item:
                out.append(item)
            if isinstance(part, ToolCall):
                waiting[part.id] = None
    out.extend(_output(call_id, UNANSWERED) for call_id in waiting)
    return out or [{"role": "user", "content": CONTINUED}]


def _words(text: str) -> dict[str, object]:
    return {"type": "input_text", "text": text}


def _picture(url: str) -> dict[str, object]:
    return {"type": "input_image", "image_url": url, "detail": "auto"}


def _write_result(result: ToolResult, shown: Mapping[str, str]) -> str | list[dict[str, object]]:
    """Write a result: plain text, or text and pictures."""
    content, seen = split_result(result, shown)
    if not seen:
        return content
    pictures = (_picture(f"data:{one.mime};base64,{data}") for one, data in seen)
    return [*([_words(content)] if content else []), *pictures]


def _output(call_id: str, content: object) -> dict[str, object]:
    return {"type": "function_call_output", "call_id": call_id, "output": content}


def _item(part: Part, behind: tuple[Part, ...], provider: str) -> dict[str, object] | None:
    """Write a part of an answer. Reasoning is sent only with what it led to after it."""
    match part:
        case Text(text=text) if text:
            return {"role": "assistant", "content": text}
        case Thinking(provider=maker) if maker == provider:
            led = any(_item(other, (), "") for other in behind)
            return _render_reasoning(part) if led else None
        case ToolCall():
            return {
                "type": "function_call",
                "call_id": part.id,
                "name": part.name,
                "arguments": fit_arguments(part.arguments),
            }
        case _:
            return None


def _render_reasoning(part: Thinking) -> dict[str, object] | None:
    """Return a reasoning item as received; one without its encrypted content is useless."""
    mark, _, rest = (part.signature or "").partition(":")
    name, _, encrypted = rest.partition(":")
    if f"{mark}:" != MARK or not encrypted:
        return None
    summary = [{"type": "summary_text", "text": part.text}] if part.text else []
    return {"type": "reasoning", "id": name, "summary": summary, "encrypted_content": encrypted}
