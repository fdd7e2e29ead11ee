"""Anthropic's messages, through the SDK's low-level `post`.

The cache marker that moves with the conversation is the top-level `cache_control`, so that no
message is written differently from one request to the next; the system block has its own.
"""

from collections.abc import Mapping
from typing import NamedTuple

import anthropic
import httpx2
import msgspec

from agent_core.context.pictures import describe_unseen, split_result
from agent_core.errors import ModelFailed
from agent_core.messages import Message, Part, Picture, Text, Thinking, ToolCall, ToolResult
from agent_core.models.answers.anthropic import REDACTED, AnthropicReader
from agent_core.models.answers.limits import limit_body
from agent_core.models.answers.refusals import read_pause
from agent_core.models.answers.refused_fields import RefusedFields
from agent_core.models.answers.spoken import INLINE
from agent_core.models.port import (
    ModelReply,
    ModelRequest,
    OnDelta,
    ToolSpec,
    permit_request,
)
from agent_core.models.providers import Effort
from agent_core.models.trust import load_trust
from agent_core.models.wire import (
    CONTINUED,
    GO_ON,
    MAX_PAUSE,
    REASONING,
    UNANSWERED,
    Line,
    ToolSheet,
    fit_arguments,
    take_raw,
)
from agent_core.phrases import phrase
from agent_core.settings import Endpoint

MAX_TOKENS, OLD_MAX_TOKENS = 64_000, 8192
"""Maximum tokens of an answer: of all models since Claude 4.5, and of older ones and other
makers'."""
OPTIONAL = ("cache_control", "output_config", "tool_choice", "thinking")
"""Fields that can be left out."""
SYSTEM_CACHE = "cache_control of the system text"
CACHE = {"type": "ephemeral"}
CHOICES = {"none": "none", "required": "any"}
_NO_TEXT = "(no text)"


class AnthropicMessages:
    """Anthropic, or a proxy that speaks its protocol."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.provider = endpoint.provider
        self._thinking = endpoint.thinking
        self._line = Line(endpoint)
        self._tools = ToolSheet(_tool)
        self._refused = RefusedFields(OPTIONAL)
        self._terse: set[str] = set()
        self._efforts: set[tuple[str, Effort | None]] = set()
        """Models, and efforts that they do not know."""
        self._client = anthropic.AsyncAnthropic(
            api_key=endpoint.api_key,
            base_url=endpoint.base_url,
            timeout=self._line.timeout,
            http_client=anthropic.DefaultAioHttpClient(
                verify=load_trust(),
                event_hooks={"request": [permit_request], "response": [limit_body, _set_pause]},
                follow_redirects=False,
            ),
            open_telemetry=False,
        )

    async def complete(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        """The whole answer to `request`; raises ModelFailed."""
        return await self._line.ask(request, self._send, AnthropicReader, on_delta)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _send(
        self, request: ModelRequest, retries: int, forget: bool = False
    ) -> httpx2.Response:
        body = self._body(request, forget=forget)
        try:
            response = await self._client.post(
                "/v1/messages",
                content=body,
                cast_to=httpx2.Response,
                options={"max_retries": retries},
                stream=True,
                stream_cls=anthropic.AsyncStream[object],
            )
        except anthropic.APIStatusError as error:
            if not forget and _is_about_thinking(error, request, self.provider):
                return await self._send(request, retries, forget=True)
            if self._learn(request, error, body):
                return await self._send(request, retries, forget)
            raise self._line.read_refusal(error.response) from None
        except anthropic.APIConnectionError as error:
            raise self._line.translate_unreachable(error.__cause__) from None
        return take_raw(response)

    def _learn(self, request: ModelRequest, error: anthropic.APIStatusError, sent: bytes) -> bool:
        """Learn from an error that the model has shorter answers, or does not know this effort, or
        a field. Return True if the request can be retried."""
        effort = (request.model, request.effort)
        if error.status_code == 400 and "effort" in error.message and effort not in self._efforts:
            self._efforts.add(effort)
            return bool(request.effort)
        if error.status_code == 400 and "max_tokens" in error.message and not request.max_tokens:
            known = self._max_tokens(request) == OLD_MAX_TOKENS
            self._terse.add(request.model)
            return not known
        field = self._refused.find(error.response, sent)
        if field == "cache_control" and field in self._refused.by_model.get(request.model, ()):
            field = SYSTEM_CACHE
        if field == "tool_choice":  # some models refuse to be forced, and no other choice
            field = f"{field} {request.tool_choice}"
        return self._refused.add(request.model, field)

    def _max_tokens(self, request: ModelRequest) -> int:
        if request.max_tokens:
            thinks = self._thinking is not False and request.model.startswith("claude-")
            return request.max_tokens + (REASONING if thinks else 0)
        old = request.model in self._terse or not request.model.startswith("claude-")
        return OLD_MAX_TOKENS if old or request.model.startswith("claude-3") else MAX_TOKENS

    def _body(self, request: ModelRequest, *, forget: bool) -> bytes:
        refused = self._refused.by_model.get(request.model, ())
        body: dict[str, object] = {
            "model": request.model,
            "stream": True,
            "max_tokens": self._max_tokens(request),
            "cache_control": CACHE,
        }
        effort = request.effort if (request.model, request.effort) not in self._efforts else None
        if self._thinking is not None or effort == "none":
            thinks = bool(self._thinking) and effort != "none"
            body["thinking"] = {"type": "adaptive" if thinks else "disabled"}
        if effort and effort != "none":
            body["output_config"] = {"effort": "low" if effort == "minimal" else effort}
        if request.tools:
            body["tools"] = self._tools.render(request.tools)
        if request.system:
            body["system"] = request.system
            if SYSTEM_CACHE not in refused:
                block = {"type": "text", "text": request.system, "cache_control": CACHE}
                body["system"] = [block]
        body["messages"] = _messages(request, "" if forget else self.provider)
        choice = request.tool_choice
        if request.tools and choice != "auto" and f"tool_choice {choice}" not in refused:
            body["tool_choice"] = {"type": CHOICES[choice]}
        for field in refused:
            body.pop(field, None)
        try:
            return msgspec.json.encode(body)
        except UnicodeEncodeError:
            raise ModelFailed(phrase("fault_characters"), "rejected") from None


async def _set_pause(response: httpx2.Response) -> None:
    """Tell the SDK, which waits as long as it is asked to, be it a year, a pause that is meant."""
    if response.status_code < 400:
        return
    await response.aread()  # it may say so in words
    pause = read_pause(response)
    for name in ("retry-after", "retry-after-ms"):
        response.headers.pop(name, None)
    if pause is not None:
        response.headers["retry-after"] = f"{pause:g}"
    if (pause or 0) > MAX_PAUSE:
        response.headers["x-should-retry"] = "false"


def _is_about_thinking(
    error: anthropic.APIStatusError, request: ModelRequest, provider: str
) -> bool:
    """Return True if thinking sent along is refused: it is bound to the account, and to what
    preceded it (the tools, the system text), which an upgrade or a new key may have changed."""
    about = error.message.lower()
    return (
        error.status_code == 400
        and ("thinking" in about or "signature" in about)
        and any(
            isinstance(part, Thinking) and part.provider == provider
            for message in request.messages
            for part in message.parts
        )
    )


def _tool(tool: ToolSpec) -> dict[str, object]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def _messages(request: ModelRequest, provider: str) -> list[dict[str, object]]:
    """The history in Anthropic's form: a user begins and ends it, roles alternate, every call is
    answered in the next message."""
    pages: list[_Page] = []
    waiting: dict[str, None] = {}

    def page(role: str) -> list[dict[str, object]]:
        """The blocks of the last message if it has this role, else of a new one."""
        if not pages or pages[-1].role != role:
            pages.append(_Page(role=role, content=[]))
        return pages[-1].content

    for message in request.messages:
        role = "assistant" if message.role == "assistant" else "user"
        if waiting and message.role != "tool":
            page("user").extend(_answer_waiting(waiting))
        if role == "assistant" and not pages:
            page("user").append(_text(CONTINUED))
        blocks = page(role)
        blocks.extend(
            filter(None, (_block(part, provider, request.pictures) for part in message.parts))
        )
        _keep_count(message, waiting)
        if not blocks:
            blocks.append(_text(_NO_TEXT))
    if waiting:
        page("user").extend(_answer_waiting(waiting))
    elif pages and pages[-1].role == "assistant":
        page("user").append(_text(GO_ON))
    return [{"role": one.role, "content": one.content} for one in pages]


def _keep_count(message: Message, waiting: dict[str, None]) -> None:
    """Add the calls of `message` to `waiting`, and remove those that it answers."""
    for part in message.parts:
        if isinstance(part, ToolCall):
            waiting[part.id] = None
        elif isinstance(part, ToolResult):
            waiting.pop(part.call_id, None)


class _Page(NamedTuple):
    """A message being written."""

    role: str
    content: list[dict[str, object]]


def _text(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


def _answer_waiting(waiting: dict[str, None]) -> list[dict[str, object]]:
    """Make results for unanswered calls; empties `waiting`."""
    blocks: list[dict[str, object]] = [
        {"type": "tool_result", "tool_use_id": call_id, "content": UNANSWERED, "is_error": True}
        for call_id in waiting
    ]
    waiting.clear()
    return blocks


def _block(part: Part, provider: str, shown: Mapping[str, str]) -> dict[str, object] | None:
    match part:
        case Picture():
            return _picture(part, shown.get(part.ref))
        case Text(text=text):
            return {"type": "text", "text": text} if text.strip() else None
        case Thinking():
            return _render_thinking(part) if part.provider == provider else None
        case ToolCall():
            return {
                "type": "tool_use",
                "id": part.id,
                "name": part.name,
                "input": msgspec.Raw(fit_arguments(part.arguments).encode()),
            }
        case ToolResult():
            block: dict[str, object] = {
                "type": "tool_result",
                "tool_use_id": part.call_id,
                "content": _write_result(part, shown),
            }
            return block | {"is_error": True} if part.error else block


def _picture(picture: Picture, data: str | None) -> dict[str, object]:
    if data is None:
        return _text(describe_unseen(picture))
    source = {"type": "base64", "media_type": picture.mime, "data": data}
    return {"type": "image", "source": source}


def _write_result(result: ToolResult, shown: Mapping[str, str]) -> str | list[dict[str, object]]:
    """Write a result: plain text, or text and pictures."""
    content, seen = split_result(result, shown)
    if not seen:
        return content
    words = [_text(content)] if content.strip() else []
    return [*words, *(_picture(one, data) for one, data in seen)]


def _render_thinking(part: Thinking) -> dict[str, object] | None:
    signature = part.signature
    if not signature or signature == INLINE:
        return None
    if signature.startswith(REDACTED):
        return {"type": "redacted_thinking", "data": signature.removeprefix(REDACTED)}
    return {"type": "thinking", "thinking": part.text, "signature": signature}
