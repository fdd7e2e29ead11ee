"""Calls that a model wrote as text: small models do, and some servers do not read what their models
write. An answer that is nothing but calls of tools that it may call is taken for these calls; they
are judged and asked about as all others."""

import re
from collections.abc import Callable

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.messages import Part, Text, Thinking, ToolCall
from agent_core.models.port import ModelReply

MAX_TEXT = 20_000
MAX_CALLS = 8
_FENCE = re.compile(r"```(?:json|tool_call|tool_code)?\s*\n(.*?)\n?\s*```", re.DOTALL)
_TAG = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)


class _Written(Struct, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, object] | None = None
    parameters: dict[str, object] | None = None


def read_written_calls(reply: ModelReply, is_known: Callable[[str], bool], nth: int) -> ModelReply:
    """`reply` with the calls that its text is, if it is nothing else, of tools that may be called
    by name; `nth` tells their ids from others of the turn."""
    if reply.finish != "stop" or any(isinstance(part, ToolCall) for part in reply.parts):
        return reply
    text = "".join(part.text for part in reply.parts if isinstance(part, Text)).strip()
    if not text.startswith(("{", "[", "`", "<")) or len(text) > MAX_TEXT:
        return reply
    written = _read(text)
    if not written or not all(is_known(one.name) for one in written):
        return reply
    thoughts = [part for part in reply.parts if isinstance(part, Thinking)]
    calls: list[Part] = [
        ToolCall(
            id=f"written-{nth}-{n}",
            name=one.name,
            arguments=msgspec.json.encode(one.arguments or one.parameters or {}).decode(),
        )
        for n, one in enumerate(written, 1)
    ]
    return replace(reply, parts=(*thoughts, *calls), finish="tool_calls")


def _read(text: str) -> list[_Written]:
    """The calls that the whole text is; [] if it is something else."""
    for form in (_TAG, _FENCE):
        if pieces := form.findall(text):
            if form.sub("", text).strip():
                return []
            break
    else:
        pieces = [text]
    found: list[_Written] = []
    for piece in pieces:
        try:
            value = msgspec.json.decode(piece)
            found += msgspec.convert(value if isinstance(value, list) else [value], list[_Written])
        except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
            return []
    has_arguments = all(one.arguments is not None or one.parameters is not None for one in found)
    return found if has_arguments and len(found) <= MAX_CALLS else []
