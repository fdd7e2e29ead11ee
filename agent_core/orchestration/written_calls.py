"""Reads calls that a model wrote as text: small models do, and some servers do not parse them.

An answer that consists of calls of callable tools counts as these calls, and so does one that ends
with them after a mark for calls; they are judged and asked about like all others.
"""

import re
from collections.abc import Callable
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.messages import Message, Part, Text, Thinking, ToolCall, calls_of
from agent_core.models.port import ModelReply

TakesText: TypeAlias = Callable[[str, str], bool]
"""Tells whether a tool takes a text for an argument, both by name: a text that looks like JSON
stays one."""
MAX_TEXT = 20_000
MAX_CALLS = 8
MAX_SAID = 400
"""Maximum characters before calls in a fence, which may also be examples."""
_FENCE = re.compile(r"```(?:json|tool_calls?|tool_code)?[ \t]*\n((?:(?!```).)*)```", re.DOTALL)
_TAG = re.compile(r"<tool_call>((?:(?!<tool_call>).)*?)</tool_call>", re.DOTALL)
_FUNCTION = re.compile(r"<function=([\w.-]+)>((?:(?!<function=).)*?)</function>", re.DOTALL)
_PARAMETER = re.compile(
    r"<parameter=([\w.-]+)>\n?((?:(?!<parameter=).)*?)\n?</parameter>", re.DOTALL
)
_MARKS = ("[TOOL_CALLS]", "<|python_tag|>")
"""Marks of Mistral's and Meta's models; the calls follow, up to the end."""
_ID = "written-"
_BEGINNINGS = ("{", "[", "`", "<")


class _Named(Struct, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, object] | str | None = None
    parameters: dict[str, object] | None = None
    type: str = "function"
    id: str | int | None = None

    def find_arguments(self) -> dict[str, object] | None:
        """Return the arguments, None if they are no object."""
        if isinstance(self.arguments, str):
            try:
                return msgspec.json.decode(self.arguments, type=dict[str, object])
            except msgspec.DecodeError:
                return None
        return self.arguments if self.arguments is not None else self.parameters


class _Wrapped(Struct, forbid_unknown_fields=True):
    """The form of chat completions."""

    function: _Named
    type: str = "function"
    id: str | int | None = None


class _Written(Struct):
    """`texts`: all its arguments were written as texts."""

    name: str
    arguments: dict[str, object]
    texts: bool = False


def read_written_calls(
    reply: ModelReply,
    is_known: Callable[[str], bool],
    thread: tuple[Message, ...],
    takes_text: TakesText = lambda name, argument: False,
) -> ModelReply:
    """Return `reply` to `thread` with the calls that its text consists of, or ends with, if they
    are of callable tools. After words a fence counts only if the model never made a call in another
    way: a model that can call shows examples in fences. `takes_text`: see TakesText."""
    if reply.finish != "stop" or any(isinstance(part, ToolCall) for part in reply.parts):
        return reply
    text = "".join(part.text for part in reply.parts if isinstance(part, Text)).strip()
    if len(text) > MAX_TEXT:
        return reply
    said, written = _read(text)
    if not written or not all(is_known(one.name) for one in written):
        return reply
    if said and text.endswith("```") and _has_called(thread):
        return reply
    before: list[Part] = [part for part in reply.parts if isinstance(part, Thinking)]
    if said:
        before.append(Text(text=said))
    calls: list[Part] = [
        ToolCall(
            id=f"{_ID}{len(thread)}-{n}",
            name=one.name,
            arguments=msgspec.json.encode(_give_kinds(one, takes_text)).decode(),
        )
        for n, one in enumerate(written, 1)
    ]
    return replace(reply, parts=(*before, *calls), finish="tool_calls")


def _has_called(thread: tuple[Message, ...]) -> bool:
    return any(not one.id.startswith(_ID) for message in thread for one in calls_of(message))


def _read(text: str) -> tuple[str, list[_Written]]:
    """Split a text into words and calls; no calls if the rest is anything else."""
    for mark in _MARKS:
        said, found, rest = text.partition(mark)
        if found:
            return said.strip(), _decode([rest])
    for form, most in ((_TAG, MAX_TEXT), (_FUNCTION, MAX_TEXT), (_FENCE, MAX_SAID)):
        if (first := form.search(text)) is None:
            continue
        said = text[: first.start()].strip()
        if form.sub("", text[first.start() :]).strip() or len(said) > most:
            return "", []
        pieces = [one[0] if form is _FUNCTION else one[1] for one in form.finditer(text)]
        return said, _decode(pieces)
    return ("", _decode([text])) if text.startswith(_BEGINNINGS) else ("", [])


def _decode(pieces: list[str]) -> list[_Written]:
    """The calls that all of the `pieces` are; [] if one is something else."""
    found: list[_Written] = []
    for piece in pieces:
        if (function := _FUNCTION.fullmatch(piece.strip())) is not None:
            given: dict[str, object] = dict(_PARAMETER.findall(function[2]))
            found.append(_Written(name=function[1], arguments=given, texts=True))
            continue
        try:
            value = msgspec.json.decode(piece)
            rows = value if isinstance(value, list) else [value]
            found += map(_read_one, rows)
        except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
            return []
    return found if len(found) <= MAX_CALLS else []


def _read_one(row: object) -> _Written:
    """Read one call. Raises msgspec.ValidationError if it is none."""
    wrapped = isinstance(row, dict) and "function" in row
    named = msgspec.convert(row, _Wrapped).function if wrapped else msgspec.convert(row, _Named)
    if (arguments := named.find_arguments()) is None:
        raise msgspec.ValidationError("no arguments")
    return _Written(name=named.name, arguments=arguments)


def _give_kinds(call: _Written, takes_text: TakesText) -> dict[str, object]:
    """Return the arguments of `call`; those in Qwen's form are converted to what their tool
    takes."""
    if not call.texts:
        return call.arguments
    return {
        name: text if takes_text(call.name, name) else _read_value(str(text))
        for name, text in call.arguments.items()
    }


def _read_value(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
