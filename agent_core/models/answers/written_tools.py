"""Conversations with models whose server takes no tools: they are listed in the prompt instead, and
calls and results written as text, as the models' own templates would write them."""

import re

import httpx2
import msgspec
from msgspec.structs import replace

from agent_core.errors import ModelFailed
from agent_core.messages import Message, Part, Text, ToolCall, ToolResult, user
from agent_core.models.answers.refusals import read_text
from agent_core.models.port import ModelRequest

TOOLS = """\
# Tools

You can call these tools. Each is listed with the JSON Schema of its arguments:
<tools>
{tools}
</tools>
To call one, or several, end your answer with a block like this for each, and write nothing behind:
<tool_call>
{{"name": "name of the tool", "arguments": {{"argument": "value"}}}}
</tool_call>
What they return follows in <tool_response> blocks."""
_MAX_READ = 2_000
_REFUSED = re.compile(
    r"enable-auto-tool-choice|tools param requires"
    r"|support (?:for )?(?:tools?(?: ?use| ?call)?|function)(?:s|ing)?\b(?! choice|\[)"
    r"|(?:tools?|tool ?[- ]?(?:use|calls?|calling)|functions?|function ?[- ]?(?:calls?|calling))"
    r"[`'\"]? (?:is|are) (?:not|un)[- ]?(?:supported|enabled|available|allowed)",
    re.IGNORECASE,
)
"""Refusals of vLLM, llama.cpp, Ollama, OpenRouter, Groq, Google, Mistral (November 2026)."""
_END = re.compile(r"</(?=tool_response)", re.IGNORECASE)


class ToolsRefused(ModelFailed):
    """The model's server takes no tools."""


def refuses_tools(response: httpx2.Response) -> bool:
    """Return True if a server takes a request with this answer only without tools."""
    return response.status_code in (400, 404, 422, 500, 501) and bool(
        _REFUSED.search(read_text(response)[:_MAX_READ])
    )


def write_tools(request: ModelRequest) -> ModelRequest:
    """Return `request` with its tools, calls and results as text."""
    listed = b"\n".join(map(msgspec.json.encode, request.tools)).decode()
    system = f"{request.system}\n\n{TOOLS.format(tools=listed)}"
    messages = tuple(map(_write_message, request.messages))
    return replace(request, system=system, messages=messages, tools=(), tool_choice="auto")


def _write_message(message: Message) -> Message:
    if message.role == "tool":
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        told = (
            f"<tool_response>\n{_keep_inside(one.content)}\n</tool_response>" for one in results
        )
        return user("\n".join(told), tuple(seen for one in results for seen in one.pictures))
    if message.role == "user":
        return message
    return replace(message, parts=tuple(map(_write_part, message.parts)))


def _keep_inside(content: str) -> str:
    """`content` that cannot pretend to end its block: what follows that would look like ours."""
    return _END.sub("< /", content)


def _write_part(part: Part) -> Part:
    if not isinstance(part, ToolCall):
        return part
    name = msgspec.json.encode(part.name).decode()
    call = f'{{"name": {name}, "arguments": {part.arguments or "{}"}}}'
    return Text(text=f"<tool_call>\n{call}\n</tool_call>")
