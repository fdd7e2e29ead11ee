"""A request in the form of Google's generateContent: plain values, as its SDK takes them."""

import base64
from collections.abc import Mapping

import msgspec

from agent_core.context.pictures import describe_unseen, split_result
from agent_core.messages import (
    Message,
    Part,
    Picture,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    calls_of,
)
from agent_core.models.port import ModelRequest, ToolChoice, ToolSpec
from agent_core.models.providers import Effort
from agent_core.models.wire import CONTINUED, GO_ON, REASONING, UNANSWERED, UNSIGNED, fit_arguments

MODES: dict[ToolChoice, str] = {"none": "NONE", "required": "ANY", "auto": "AUTO"}
LEVELS: dict[Effort, str] = {
    **dict.fromkeys(("none", "minimal"), "MINIMAL"),
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    **dict.fromkeys(("xhigh", "max"), "XHIGH"),
}

Json = dict[str, object]
_decode = msgspec.json.Decoder(Json).decode


def config(request: ModelRequest, thinking: bool | None) -> Json:
    """Return the request without the conversation."""
    made: Json = {"automatic_function_calling": {"disable": True}}
    if request.system:
        made["system_instruction"] = request.system
    if request.max_tokens:
        made["max_output_tokens"] = request.max_tokens + REASONING
    thinks: Json = {} if thinking is None else {"include_thoughts": thinking}
    if request.effort:
        thinks["thinking_level"] = LEVELS[request.effort]
    if thinks:
        made["thinking_config"] = thinks
    if request.tools:
        made["tools"] = [{"function_declarations": [_tool(tool) for tool in request.tools]}]
        mode = MODES[request.tool_choice]
        if mode != "AUTO":
            made["tool_config"] = {"function_calling_config": {"mode": mode}}
    return made


def contents(request: ModelRequest, provider: str) -> list[Json]:
    """The conversation: users begin and end it, roles take turns, and each call is answered in
    the very next content, in the order of the calls."""
    pages: list[tuple[str, list[Json]]] = []
    asked: tuple[ToolCall, ...] = ()
    given: dict[str, ToolResult] = {}

    def page(role: str) -> list[Json]:
        if not pages or pages[-1][0] != role:
            pages.append((role, []))
        return pages[-1][1]

    for message in request.messages:
        if message.role == "tool":
            given |= {part.call_id: part for part in message.parts if isinstance(part, ToolResult)}
            continue
        if asked:
            page("user").extend(_results(asked, given, request.pictures))
        role = "model" if message.role == "assistant" else "user"
        if role == "model" and not pages:
            page("user").append({"text": CONTINUED})
        asked = calls_of(message)
        page(role).extend(_parts(message, provider, request))
    if asked:
        page("user").extend(_results(asked, given, request.pictures))
    if not pages or pages[-1][0] == "model":
        page("user").append({"text": GO_ON if pages else CONTINUED})
    return [{"role": role, "parts": parts or [{"text": GO_ON}]} for role, parts in pages]


def _parts(message: Message, provider: str, request: ModelRequest) -> list[Json]:
    """Return the parts of a message; a signature belongs to the part after it, as received."""
    out: list[Json] = []
    signature: bytes | None = None
    called = False
    for part in message.parts:
        if isinstance(part, Thinking):
            signature = _signature(part, provider) or signature
            continue
        made = _part(part, request.pictures)
        if made is None:
            continue
        if isinstance(part, ToolCall) and not called:
            called = True
            signature = signature or (UNSIGNED.encode() if _signs_calls(request.model) else None)
        if signature is not None:
            made["thought_signature"], signature = signature, None
        out.append(made)
    return out


def _signature(part: Thinking, provider: str) -> bytes | None:
    """Return the signature of a thought; thoughts in words are not sent back."""
    if part.provider != provider or part.text or not part.signature:
        return None
    try:
        return base64.b64decode(part.signature, validate=True)
    except ValueError:
        return None


def _signs_calls(model: str) -> bool:
    return not model.startswith("gemini-2")


def _part(part: Part, shown: Mapping[str, str]) -> Json | None:
    match part:
        case Text(text=text):
            return {"text": text} if text else None
        case Picture():
            data = shown.get(part.ref)
            if data is None:
                return {"text": describe_unseen(part)}
            return _picture(part, data)
        case ToolCall():
            call = {
                "id": part.id,
                "name": part.name,
                "args": _decode(fit_arguments(part.arguments)),
            }
            return {"function_call": call}
        case _:
            return None


def _picture(picture: Picture, data: str) -> Json:
    return {"inline_data": {"mime_type": picture.mime, "data": base64.b64decode(data)}}


def _results(
    asked: tuple[ToolCall, ...], given: Mapping[str, ToolResult], shown: Mapping[str, str]
) -> list[Json]:
    """The results of `asked`, and behind them the pictures that they show."""
    out: list[Json] = []
    pictures: list[Json] = []
    for call in asked:
        result = given.get(call.id)
        content, seen = split_result(result, shown) if result else (UNANSWERED, ())
        out.append(_result(call, content, result is None or result.error))
        pictures += [_picture(*one) for one in seen]
    return [*out, *pictures]


def _result(call: ToolCall, content: str, failed: bool) -> Json:
    said = {"error" if failed else "output": content}
    return {"function_response": {"id": call.id, "name": call.name, "response": said}}


def _tool(tool: ToolSpec) -> Json:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters_json_schema": tool.parameters,
    }
