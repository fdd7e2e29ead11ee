"""Anthropic's messages, through the SDK's low-level `post`.

The cache marker that moves with the conversation is the top-level `cache_control`, so that no
message is written differently from one request to the next; the system block has its own.
"""

import anthropic
import httpx2
import msgspec

from agent_core.errors import ModelFailed
from agent_core.messages import Message, Part, Text, Thinking, ToolCall, ToolResult
from agent_core.models.anthropic_answer import REDACTED, Answer
from agent_core.models.port import OnDelta, Reply, Request, ToolSpec
from agent_core.models.wire import UNANSWERED, Line, ToolSheet, feed, raw
from agent_core.settings import Endpoint

MAX_TOKENS = 8192
CACHE = {"type": "ephemeral"}
CHOICES = {"none": "none", "required": "any"}
_NO_TEXT = "(no text)"
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class AnthropicMessages:
    """Anthropic, or a proxy that speaks its protocol."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.provider = endpoint.provider
        self._thinking = endpoint.thinking
        self._line = Line(endpoint)
        self._tools = ToolSheet(_tool)
        self._client = anthropic.AsyncAnthropic(
            api_key=endpoint.api_key,
            base_url=endpoint.base_url,
            timeout=self._line.timeout,
            http_client=anthropic.DefaultAioHttpClient(),
            open_telemetry=False,
        )

    async def complete(self, request: Request, on_delta: OnDelta) -> Reply:
        """The whole answer to `request`; raises ModelFailed."""

        async def send(retries: int) -> httpx2.Response:
            return await self._send(request, retries)

        async def read(response: httpx2.Response, show: OnDelta) -> Reply:
            answer = Answer(request, self.provider, show)
            await feed(response, answer)
            return answer.reply()

        return await self._line.ask(send, read, on_delta)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _send(self, request: Request, retries: int) -> httpx2.Response:
        try:
            response = await self._client.post(
                "/v1/messages",
                content=self._body(request),
                cast_to=httpx2.Response,
                options={"max_retries": retries},
                stream=True,
                stream_cls=anthropic.AsyncStream[object],
            )
        except anthropic.APIStatusError as error:
            raise self._line.refused(error.response) from None
        except anthropic.APIConnectionError as error:
            raise self._line.unreachable(error) from None
        return raw(response)

    def _body(self, request: Request) -> bytes:
        body: dict[str, object] = {
            "model": request.model,
            "stream": True,
            "max_tokens": request.max_tokens or MAX_TOKENS,
            "cache_control": CACHE,
        }
        if self._thinking is not None:
            body["thinking"] = {"type": "adaptive" if self._thinking else "disabled"}
        if request.tools:
            body["tools"] = self._tools.render(request.tools)
        if request.system:
            block = {"type": "text", "text": request.system, "cache_control": CACHE}
            body["system"] = [block]
        body["messages"] = _messages(request.messages, self.provider)
        if request.tools and request.tool_choice != "auto":
            body["tool_choice"] = {"type": CHOICES[request.tool_choice]}
        try:
            return msgspec.json.encode(body)
        except UnicodeEncodeError:
            raise ModelFailed("The conversation holds broken characters.", "rejected") from None


def _tool(tool: ToolSpec) -> dict[str, object]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def _messages(history: tuple[Message, ...], provider: str) -> list[dict[str, object]]:
    """The history in Anthropic's form: roles alternate, every call is answered in the next message."""
    out: list[dict[str, object]] = []
    blocks: list[dict[str, object]] = []
    waiting: dict[str, None] = {}
    last = ""
    for message in history:
        role = "assistant" if message.role == "assistant" else "user"
        if role == last == "assistant" and waiting:
            out.append({"role": "user", "content": _unanswered(waiting)})
            last = "user"
        if role != last:
            blocks, last = [], role
            out.append({"role": role, "content": blocks})
        if message.role == "user":
            blocks.extend(_unanswered(waiting))
        for part in message.parts:
            block = _block(part, provider)
            if block:
                blocks.append(block)
            if isinstance(part, ToolCall):
                waiting[part.id] = None
            elif isinstance(part, ToolResult):
                waiting.pop(part.call_id, None)
        if not blocks:
            blocks.append({"type": "text", "text": _NO_TEXT})
    if waiting:
        rest = _unanswered(waiting)
        blocks.extend(rest) if last == "user" else out.append({"role": "user", "content": rest})
    return out


def _unanswered(waiting: dict[str, None]) -> list[dict[str, object]]:
    """Results for the calls that got none; empties `waiting`."""
    blocks: list[dict[str, object]] = [
        {"type": "tool_result", "tool_use_id": call_id, "content": UNANSWERED, "is_error": True}
        for call_id in waiting
    ]
    waiting.clear()
    return blocks


def _block(part: Part, provider: str) -> dict[str, object] | None:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text} if text.strip() else None
        case Thinking():
            return _thinking(part) if part.provider == provider else None
        case ToolCall():
            return {
                "type": "tool_use",
                "id": part.id,
                "name": part.name,
                "input": _input(part.arguments),
            }
        case ToolResult():
            block: dict[str, object] = {
                "type": "tool_result",
                "tool_use_id": part.call_id,
                "content": part.content,
            }
            return block | {"is_error": True} if part.error else block


def _thinking(part: Thinking) -> dict[str, object] | None:
    signature = part.signature
    if not signature:
        return None
    if signature.startswith(REDACTED):
        return {"type": "redacted_thinking", "data": signature.removeprefix(REDACTED)}
    return {"type": "thinking", "thinking": part.text, "signature": signature}


def _input(arguments: str) -> object:
    """The arguments as an object, byte for byte; what is no object goes in one."""
    try:
        _decode(arguments)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return {"invalid_arguments": arguments}
    return msgspec.Raw(arguments.encode())
