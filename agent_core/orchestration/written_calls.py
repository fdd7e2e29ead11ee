"""Takes calls that a model wrote as text for calls: small models write them, and some servers do
not parse them.

An answer that consists of calls of callable tools counts as these calls, and so does one that ends
with them after a mark for calls; they are judged and asked about like all others.
"""

import json
from collections.abc import Callable
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from agent_core.guardrails.sign_search import has_any
from agent_core.messages import Message, Part, Text, Thinking, ToolCall, calls_of
from agent_core.models.port import ModelReply
from agent_core.orchestration.call_syntax import WrittenCall, WrittenCalls, find_calls
from agent_core.tools.finding.loose_calls import find_tool

TakesText: TypeAlias = Callable[[str, str], bool]
"""Tells whether a tool takes a text for an argument, both by name: a text that looks like JSON
stays one."""
_ID = "written-"
_SIGNS = ("<", "[", "{", "(")
"""One of these occurs in each call."""


def read_written_calls(
    reply: ModelReply,
    is_known: Callable[[str], bool],
    thread: tuple[Message, ...],
    takes_text: TakesText = lambda name, argument: False,
) -> ModelReply:
    """Return `reply` to `thread` with the calls that its text consists of, or ends with, if they
    are of callable tools. `takes_text`: see TakesText."""
    if reply.finish not in ("stop", "length"):
        return reply
    if any(isinstance(part, ToolCall) for part in reply.parts):
        return reply
    text = "".join(part.text for part in reply.parts if isinstance(part, Text)).strip()
    found = find_calls(text) if has_any(_SIGNS, text) else None
    if found is None or not _are_meant(found, reply, is_known, thread):
        return reply
    before: list[Part] = [part for part in reply.parts if isinstance(part, Thinking)]
    if found.said:
        before.append(Text(text=found.said))
    calls: list[Part] = [
        ToolCall(
            id=f"{_ID}{len(thread)}-{n}",
            name=one.name,
            arguments=_write_arguments(one, find_tool(one.name, is_known), takes_text),
        )
        for n, one in enumerate(found.calls, 1)
    ]
    return replace(reply, parts=(*before, *calls), finish="tool_calls")


def _are_meant(
    found: WrittenCalls,
    reply: ModelReply,
    is_known: Callable[[str], bool],
    thread: tuple[Message, ...],
) -> bool:
    """Return True if the calls are to be made. A model that made calls in another way shows
    examples in fences, and of tools that do not exist; any other one misspells their names. What is
    cut off without a mark may be a part of anything."""
    if reply.finish == "length" and not found.marked:
        return False
    if _has_called(thread):
        known = all(is_known(find_tool(one.name, is_known)) for one in found.calls)
        return known and (found.marked or not found.said)
    return found.marked or all(is_known(find_tool(one.name, is_known)) for one in found.calls)


def _has_called(thread: tuple[Message, ...]) -> bool:
    return any(not one.id.startswith(_ID) for message in thread for one in calls_of(message))


def _write_arguments(call: WrittenCall, name: str, takes_text: TakesText) -> str:
    """Write the arguments of a call of the tool `name` as JSON; those written as texts are
    converted to what it takes."""
    given = call.arguments
    if isinstance(given, str):
        return given
    if call.texts:
        given = {
            key: text if takes_text(name, key) else _read_value(str(text))
            for key, text in given.items()
        }
    try:
        return msgspec.json.encode(given).decode()
    except (TypeError, ValueError, OverflowError):  # half of a character, a number too long
        return json.dumps(given, default=str)


def _read_value(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
