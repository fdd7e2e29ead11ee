"""OpenAI's chat completions, at OpenAI or at any compatible address.

Bypasses the SDK's typed `create` with a body built here, as that walks the whole history (80 ms a
call at 200 messages). The body is append-only: what may change comes after the messages, and a
message is always written the same way.
"""

import ssl
from functools import cached_property

import httpx2
import msgspec
from msgspec.structs import replace

from agent_core import ambient
from agent_core.context.pictures import render_user_content, split_result
from agent_core.errors import ModelFailed
from agent_core.messages import (
    Message,
    Picture,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    text_of,
)
from agent_core.models.answers.openai_chat import FIELDS, ChatCompletionsReader
from agent_core.models.answers.openai_responses import MARK
from agent_core.models.answers.refusals import read_body, read_pause, read_text
from agent_core.models.answers.refused_fields import STATUSES, RefusedFields
from agent_core.models.credit import says_unpaid
from agent_core.models.port import ModelReply, ModelRequest, OnDelta, ToolSpec
from agent_core.models.streamed_http import StreamedResponse, StreamingClient
from agent_core.models.wire import (
    CONTINUED,
    MAX_PAUSE,
    REASONING,
    TRIED,
    UNANSWERED,
    UNSIGNED,
    Line,
    ToolSheet,
    fit_arguments,
)
from agent_core.phrases import phrase
from agent_core.settings import Endpoint

OPTIONAL = (
    "stream_options",
    "prompt_cache_key",
    "enable_thinking",
    "reasoning_effort",
    "reasoning_content",
    "tool_choice",
    "max_tokens",
    "max_completion_tokens",
)
"""Fields that can be left out."""
GOOGLE = "generativelanguage.googleapis.com"
SEEN = "[What the results above show: {paths}]"
"""Precedes pictures of results, which are sent as a user's: a result takes words alone."""


_AGENT = "Turnkeeper"


class CallRefused(Exception):
    """The server answered with a status that may be about a field."""

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__(read_text(response))
        self.response = response


class ChatClient:
    """OpenAI's client without its layer of calls: the SDK's `post` copies options and checks types
    for longer than everything else that a short message costs the gateway.

    It retries in the same cases as the SDK. The SDK's headers (organisation, project) are for
    OpenAI alone: no other server is worth half a second of a start.
    """

    def __init__(self, endpoint: Endpoint, line: Line, path: str) -> None:
        self.own = f".{httpx2.URL(endpoint.base_url).host}".endswith(".api.openai.com")
        self._line = line
        self._endpoint = endpoint
        self._http = StreamingClient(f"{endpoint.base_url.rstrip('/')}/{path}", line.timeout)
        self._more = _load_sdk_headers(endpoint) if self.own else {}

    @cached_property
    def _headers(self) -> dict[str, str]:
        """The headers of each call; raises ValueError for a key that cannot be sent."""
        headers = {
            "Accept": "application/json",
            "Authorization": f"Bearer {self._endpoint.api_key}",
            "Content-Type": "application/json",
            "User-Agent": _AGENT,
        }
        return dict(httpx2.Headers(headers | self._more).multi_items())

    async def post(self, body: bytes, retries: int) -> StreamedResponse:
        """Start a call, with as many more tries as `retries`; raises ModelFailed, and CallRefused
        for a status that may be about a field."""
        headers = self._headers
        for tried in range(retries + 1):
            if tried:
                headers = {**self._headers, TRIED: str(tried)}
            wanted: float | None = None
            try:
                response = await self._http.post(headers, body, tried)
                if 200 <= response.status < 300:
                    return response
                refusal = await response.keep()
            except httpx2.RequestError as error:
                if tried == retries:
                    raise self._line.translate_unreachable(error) from None
            else:
                wanted = read_pause(refusal)
                if tried == retries or not _is_passing(refusal) or (wanted or 0) > MAX_PAUSE:
                    if refusal.status_code in STATUSES:
                        raise CallRefused(refusal)
                    raise self._line.read_refusal(refusal)
            await ambient.wait(wanted or _pick_pause(tried))
        raise AssertionError("every last try returns or raises")

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


def _load_sdk_headers(endpoint: Endpoint) -> dict[str, str]:
    """Return the headers that OpenAI's SDK sends with each call."""
    import openai

    nobody = httpx2.AsyncClient(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # never called
    sdk = openai.AsyncOpenAI(
        api_key=endpoint.api_key, base_url=endpoint.base_url, http_client=nobody
    )
    headers = {**sdk.default_headers, **sdk.auth_headers}
    return {name: value for name, value in headers.items() if isinstance(value, str)}


def _pick_pause(tried: int) -> float:
    """Return the seconds before a retry if the server names none, with jitter."""
    return min(8.0, 0.5 * 2.0**tried) * (1 - ambient.pick(250) / 1000)


def _is_passing(response: httpx2.Response) -> bool:
    wish = response.headers.get("x-should-retry")
    if wish in ("true", "false"):
        return wish == "true"
    if response.status_code == 429 and says_unpaid(read_body(response)):
        return False
    return response.status_code in (408, 409, 429) or response.status_code >= 500


class OpenAIChat:
    """One provider of chat completions."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.provider = endpoint.provider
        self._endpoint = endpoint
        self._line = Line(endpoint)
        self._signed = httpx2.URL(endpoint.base_url).host == GOOGLE or self.provider == "gemini"
        self._tools = ToolSheet(render_tool)
        self._calls = ChatClient(endpoint, self._line, "chat/completions")
        self._without_effort: set[str] = set()
        self._refused = RefusedFields(OPTIONAL, "reasoning_effort")

    async def complete(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        """The whole answer to `request`; raises ModelFailed."""
        why = None if self._calls.own else self._ask_why
        return await self._line.ask(request, self._send, ChatCompletionsReader, on_delta, why)

    async def close(self) -> None:
        """Close the connections."""
        await self._calls.close()

    async def _ask_why(self, request: ModelRequest) -> None:
        """Ask for the reason of a stream that broke off at once, by a call without a stream: some
        servers (llama-cpp-python) check a request only then. Raises ModelFailed."""
        body = self._body(replace(request, max_tokens=1), stream=False)
        try:
            response = await self._calls.post(body, 1)  # the first may use a broken connection
        except CallRefused as error:
            raise self._line.read_refusal(error.response) from None
        except ModelFailed:
            return
        await response.aclose()

    async def _send(self, request: ModelRequest, retries: int) -> StreamedResponse:
        body = self._body(request)
        try:
            return await self._calls.post(body, retries)
        except CallRefused as error:
            if self._learn(request.model, self._refused.find(error.response, body)):
                return await self._send(request, retries)
            raise self._line.read_refusal(error.response) from None

    def _learn(self, model: str, field: str) -> bool:
        """Learn that a model refuses `field`, or takes tools here only without reasoning (gpt-5.6
        and later). Return True if the request can be retried."""
        if field == "reasoning_effort" and model not in self._without_effort:
            self._without_effort.add(model)
            return True
        return self._refused.add(model, field)

    def _body(self, request: ModelRequest, *, stream: bool = True) -> bytes:
        endpoint = self._endpoint
        model = request.model
        body: dict[str, object] = {"model": model, "stream": stream}
        if stream:
            body["stream_options"] = {"include_usage": True}
        if request.cache_key and (
            self._calls.own if endpoint.cache_key is None else endpoint.cache_key
        ):
            body["prompt_cache_key"] = request.cache_key
        if endpoint.thinking is not None:
            body["enable_thinking"] = endpoint.thinking
        if request.tools:
            body["tools"] = self._tools.render(request.tools)
        if effort := "none" if model in self._without_effort else request.effort:
            body["reasoning_effort"] = effort
        body["messages"] = self._messages(request)
        if request.tools and request.tool_choice != "auto":
            body["tool_choice"] = request.tool_choice
        if request.max_tokens:
            body |= self._limit(model, request.max_tokens)
        for field in self._refused.by_model.get(model, ()):
            body.pop(field, None)
        try:
            return msgspec.json.encode(body)
        except UnicodeEncodeError:
            raise ModelFailed(phrase("fault_characters"), "rejected") from None

    def _limit(self, model: str, tokens: int) -> dict[str, object]:
        """The field that limits an answer: an older one, or OpenAI's, which counts reasoning."""
        newer = ("max_completion_tokens", tokens + REASONING)
        both = (newer, ("max_tokens", tokens))
        for name, most in both if self._calls.own else reversed(both):
            if name not in self._refused.by_model.get(model, ()):
                return {name: most}
        return {}

    def _messages(self, request: ModelRequest) -> list[dict[str, object]]:
        messages = render_messages(request, self.provider)
        if FIELDS[0] in self._refused.by_model.get(request.model, ()):
            for message in messages:
                message.pop(FIELDS[0], None)
        if not self._calls.own:
            messages = alternate_roles(messages)
        if self._signed and not request.model.startswith("gemini-2"):
            _sign(messages)
        return messages


def alternate_roles(messages: list[dict[str, object]]) -> list[dict[str, object]]:
    """Alternate user and assistant, beginning with a user, as the templates of many servers
    require."""
    out: list[dict[str, object]] = []
    for message in messages:
        last = out[-1] if out else {"role": "system"}
        role = message["role"]
        if role == "assistant" and last["role"] == "system":
            out.append({"role": "user", "content": CONTINUED})
        elif role == last["role"] and role in ("user", "assistant"):
            empty = None if message.get("tool_calls") else ""
            content = _join_contents(last["content"], message["content"]) or empty
            out[-1] = last | message | {"content": content}
            continue
        out.append(message)
    return out


def _join_contents(first: object, second: object) -> object:
    """The contents of two messages as one."""
    contents = [one for one in (first, second) if one]
    if all(isinstance(one, str) for one in contents):
        return "\n\n".join(map(str, contents))
    return [
        part for one in contents for part in (one if isinstance(one, list) else [_words(str(one))])
    ]


def _sign(messages: list[dict[str, object]]) -> None:
    """Give the first call of each message a signature if it has none."""
    for message in messages:
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            calls[0].setdefault("extra_content", {"google": {"thought_signature": UNSIGNED}})


def render_tool(tool: ToolSpec) -> dict[str, object]:
    """A tool in OpenAI's form, which others took over."""
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


def render_messages(request: ModelRequest, provider: str) -> list[dict[str, object]]:
    """The history in OpenAI's form: every call is answered right behind its message."""
    out: list[dict[str, object]] = []
    if request.system:
        out.append({"role": "system", "content": request.system})
    waiting: dict[str, None] = {}
    seen: list[tuple[Picture, str]] = []
    for message in request.messages:
        if message.role == "tool":
            for part in message.parts:
                if isinstance(part, ToolResult):
                    waiting.pop(part.call_id, None)
                    content, pictures = split_result(part, request.pictures)
                    seen += pictures
                    out.append(_result(part.call_id, content))
            continue
        if waiting or seen:
            out.extend(_show_behind(waiting, seen))
        if len(message.parts) == 1 and type(message.parts[0]) is Text:  # almost the whole history
            out.append({"role": message.role, "content": message.parts[0].text})
        elif message.role == "user":
            out.append(
                {
                    "role": "user",
                    "content": render_user_content(message, request.pictures, (_words, _picture)),
                }
            )
        else:
            out.append(_assistant(message, provider, waiting))
    out.extend(_show_behind(waiting, seen))
    return out


def _show_behind(
    waiting: dict[str, None], seen: list[tuple[Picture, str]]
) -> list[dict[str, object]]:
    """Return the messages after an answer's results: results for unanswered calls, and the pictures
    of the others; empties both."""
    out = [_result(call_id, UNANSWERED) for call_id in waiting]
    if seen:
        words = _words(SEEN.format(paths=", ".join(one.path for one, _ in seen)))
        shown = (_picture(f"data:{one.mime};base64,{data}") for one, data in seen)
        out.append({"role": "user", "content": [words, *shown]})
    waiting.clear()
    seen.clear()
    return out


def _words(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


def _picture(url: str) -> dict[str, object]:
    return {"type": "image_url", "image_url": {"url": url}}


def _result(call_id: str, content: str) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def _assistant(message: Message, provider: str, waiting: dict[str, None]) -> dict[str, object]:
    """An assistant message; its calls are added to `waiting`."""
    out: dict[str, object] = {"role": "assistant", "content": text_of(message)}
    calls: list[dict[str, object]] = []
    signature = ""
    for part in message.parts:
        match part:
            case Thinking(provider=maker) if maker == provider:
                if part.text and part.signature in (None, *FIELDS):
                    out[part.signature or FIELDS[0]] = part.text
                elif not part.text and not (part.signature or "").startswith(MARK):
                    signature = part.signature or ""
            case ToolCall():
                waiting[part.id] = None
                function = {"name": part.name, "arguments": fit_arguments(part.arguments)}
                call: dict[str, object] = {"id": part.id, "type": "function", "function": function}
                if signature:
                    call["extra_content"] = {"google": {"thought_signature": signature}}
                calls.append(call)
                signature = ""
            case _:
                pass
    if calls:
        out["tool_calls"] = calls
        out["content"] = out["content"] or None
    return out
