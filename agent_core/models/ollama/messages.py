"""A request in the form of Ollama's /api/chat."""

import msgspec

from agent_core.models.openai_chat import alternate_roles, render_messages
from agent_core.models.port import ModelRequest
from agent_core.models.providers import Effort

Json = dict[str, object]
LEVELS: dict[Effort, bool | str] = {
    "none": False,
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    **dict.fromkeys(("high", "xhigh", "max"), "high"),
}
"""Values of `think` by effort."""
_THOUGHTS = ("reasoning_content", "reasoning")


def build_body(request: ModelRequest, provider: str, tools: msgspec.Raw, num_ctx: int) -> Json:
    """Build the body without `think`. `num_ctx` 0: the server's default window."""
    body: Json = {"model": request.model, "stream": True, "truncate": False}
    if request.tools and request.tool_choice != "none":
        body["tools"] = tools
    body["messages"] = list(_convert(alternate_roles(render_messages(request, provider))))
    options: Json = {"num_ctx": num_ctx} if num_ctx else {}
    if request.max_tokens:
        options["num_predict"] = request.max_tokens
    return body | {"options": options}


def _convert(messages: list[Json]) -> list[Json]:
    """Convert chat completions' messages to Ollama's: words and pictures apart, arguments as
    objects, the tool's name beside its result."""
    names: dict[object, object] = {}
    out: list[Json] = []
    for message in messages:
        words, pictures = _take_apart(message["content"])
        made: Json = {"role": message["role"], "content": words}
        if pictures:
            made["images"] = pictures
        for field in _THOUGHTS:
            if field in message:
                made["thinking"] = message[field]
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            made["tool_calls"] = [_convert_call(call, names) for call in calls]
        if "tool_call_id" in message:
            made["tool_call_id"] = message["tool_call_id"]
            made["tool_name"] = names.get(message["tool_call_id"], "")
        out.append(made)
    return out


def _take_apart(content: object) -> tuple[str, list[str]]:
    """Words, and pictures in base64."""
    if not isinstance(content, list):
        return str(content or ""), []
    words = [str(part["text"]) for part in content if part["type"] == "text"]
    urls = (str(part["image_url"]["url"]) for part in content if part["type"] == "image_url")
    return "\n\n".join(words), [url.partition(",")[2] for url in urls]


def _convert_call(call: Json, names: dict[object, object]) -> Json:
    function = call["function"]
    assert isinstance(function, dict)
    names[call["id"]] = function["name"]
    made = {"name": function["name"], "arguments": _read_object(str(function["arguments"]))}
    return {"id": call["id"], "function": made}


def _read_object(arguments: str) -> Json:
    """Return arguments as an object, as required; anything else is wrapped in one."""
    try:
        value = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        value = arguments
    return value if isinstance(value, dict) else {"arguments": value}
