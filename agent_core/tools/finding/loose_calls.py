"""Repairs calls as models misspell them: the tool's name in the form of another protocol, arguments
that are JSON in JSON. Their meaning is clear, so nobody has to ask again.

Arguments that are nested too deeply are replaced by words that say so: a model that repeats itself
writes them, and every decoder would run out of stack, here, at a provider, or where people see the
call.
"""

import json
import re
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from agent_core.messages import Part, ToolCall
from agent_core.models.port import ModelReply

DEEPEST = 64
_PREFIX = re.compile(r"(?:functions?|tools?|default_api)[.:/]+", re.IGNORECASE)
_SUFFIX = re.compile(r"(?:<\|.*|:\d+)\Z", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_ENDS = re.compile(r"(?:[\s}\]]|</?\w{1,20}>|<[|\uff5c][^<>\n]{1,40}[|\uff5c]>|```)+")
_decoder = json.JSONDecoder()
_UNREADABLE = "[nested too deeply"
"""No JSON, so the call is answered as invalid."""


def tidy_calls(reply: ModelReply, is_known: Callable[[str], bool]) -> ModelReply:
    """Return `reply` with calls named like existing tools, with objects for arguments."""
    return replace(reply, parts=tuple(_tidy(part, is_known) for part in reply.parts))


def _tidy(part: Part, is_known: Callable[[str], bool]) -> Part:
    if not isinstance(part, ToolCall):
        return part
    name, arguments = find_tool(part.name, is_known), _unpack(part.arguments)
    if (name, arguments) == (part.name, part.arguments):
        return part
    return replace(part, name=name, arguments=arguments)


def find_tool(name: str, is_known: Callable[[str], bool]) -> str:
    """Return the name of the tool that `name` stands for, `name` itself if there is none."""
    if is_known(name):
        return name
    plain = _SUFFIX.sub("", _PREFIX.sub("", name.strip(), 1))
    return next(filter(is_known, (plain, plain.lower().replace("-", "_"))), name)


def _unpack(arguments: str) -> str:
    """The object that `arguments` are the JSON of a JSON of; nothing at all is an empty one."""
    if _is_too_deep(arguments):
        return _UNREADABLE
    bare = arguments.strip()
    if bare in ("", "null", '""'):
        return "{}"
    if not bare.startswith('"'):
        return _drop_rest(arguments)
    try:
        inner = msgspec.json.decode(bare, type=str)
        msgspec.json.decode(inner, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        return arguments
    return _UNREADABLE if _is_too_deep(inner) else inner


def _drop_rest(arguments: str) -> str:
    """Return the one object of arguments that have more: an empty one before it, which servers send
    as a beginning, it once more, or what ends a call in a model's template."""
    try:
        value, end = _decoder.raw_decode(arguments.lstrip())
    except (ValueError, RecursionError):
        return arguments
    first, rest = arguments.lstrip()[:end], arguments.lstrip()[end:].strip()
    if not isinstance(value, dict) or not rest:
        return arguments
    if _ENDS.fullmatch(rest) or rest == first.strip():
        return first
    if value:
        return arguments
    try:
        more = _decoder.decode(rest)
    except (ValueError, RecursionError):
        return arguments
    return rest if isinstance(more, dict) else arguments


def _is_too_deep(arguments: str) -> bool:
    if arguments.count("[") + arguments.count("{") <= DEEPEST:
        return False
    depth = 0
    for sign in re.findall(r"[\[{\]}]", _STRING.sub("", arguments)):
        depth += 1 if sign in "[{" else -1
        if depth > DEEPEST:
            return True
    return False
