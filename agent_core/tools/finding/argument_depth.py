"""Arguments of calls that are nested too deeply to be read: a model that repeats itself writes
them, and whoever decodes them would run out of stack, here, at a provider, or where people see the
call."""

import re

from msgspec.structs import replace

from agent_core.messages import Part, ToolCall
from agent_core.models.port import ModelReply

DEEPEST = 64
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_UNREADABLE = "[nested too deeply"
"""No JSON, so the call is answered as one that is not."""


def replace_deep_arguments(reply: ModelReply) -> ModelReply:
    """`reply`, where arguments that nobody could read give way to words that say so."""
    return replace(reply, parts=tuple(map(_replace_deep, reply.parts)))


def _replace_deep(part: Part) -> Part:
    if not isinstance(part, ToolCall) or not _is_too_deep(part.arguments):
        return part
    return replace(part, arguments=_UNREADABLE)


def _is_too_deep(arguments: str) -> bool:
    if arguments.count("[") + arguments.count("{") <= DEEPEST:
        return False
    depth = 0
    for sign in re.findall(r"[\[{\]}]", _STRING.sub("", arguments)):
        depth += 1 if sign in "[{" else -1
        if depth > DEEPEST:
            return True
    return False
