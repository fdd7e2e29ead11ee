"""Reads a caller's history: our messages, their `to_dict`, or OpenAI's dicts."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias, cast

import msgspec

from agent_core.errors import Misuse
from agent_core.messages import Message, Part, Text, ToolCall, ToolResult, user

History: TypeAlias = Iterable[Message | Mapping[str, object]]
MISFIT = (
    "message {n} of the history is none: give Message, or a dict such as "
    '{{"role": "user", "content": "…"}}{why}'
)


MISFITS = (TypeError, ValueError, KeyError, AttributeError, msgspec.ValidationError)


def read_history(given: History | None) -> tuple[Message, ...]:
    """Convert `given` to messages. Raises Misuse, which names the first wrong one."""
    if given is not None and (not isinstance(given, Iterable) or isinstance(given, str | Mapping)):
        raise Misuse(f"a history is a list of messages, not {given!r:.200}")
    messages: list[Message] = []
    names: dict[str, str] = {}
    for n, one in enumerate(given or ()):
        if not isinstance(one, Message):
            try:
                one = _read(one, names)
            except MISFITS as error:
                why = f" ({error})" if isinstance(error, ValueError) else ""
                raise Misuse(MISFIT.format(n=n + 1, why=why)) from None
        messages.append(one)
    return tuple(messages)


def _read(given: Mapping[str, object], names: dict[str, str]) -> Message:
    """Convert one message; `names`: of the calls before it, by their ids."""
    if "parts" in given:
        return msgspec.convert(dict(given), Message)
    words = _read_words(given.get("content"))
    match given["role"]:
        case "user":
            return user(words)
        case "assistant":
            made = cast("list[Mapping[str, object]]", given.get("tool_calls") or ())
            calls = tuple(map(_read_call, made))
            names.update({call.id: call.name for call in calls})
            parts: tuple[Part, ...] = (Text(text=words),) if words or not calls else ()
            return Message(role="assistant", parts=(*parts, *calls))
        case "tool":
            call = str(given["tool_call_id"])
            name = names.get(call) or str(given.get("name") or "tool")
            return Message(role="tool", parts=(ToolResult(call_id=call, name=name, content=words),))
        case "system" | "developer":
            raise ValueError("instructions go into system_message")
        case role:
            raise ValueError(f"no role {role!r}")


def _read_words(content: object) -> str:
    """Return the text of a content, which may come in parts."""
    if isinstance(content, str) or content is None:
        return content or ""
    parts = cast("list[Mapping[str, object]]", content)
    if any(part["type"] not in ("text", "input_text", "output_text") for part in parts):
        raise ValueError("only text can be given")
    return "\n".join(str(part["text"]) for part in parts)


def _read_call(given: Mapping[str, object]) -> ToolCall:
    made = cast("Mapping[str, object]", given["function"])
    return ToolCall(id=str(given["id"]), name=str(made["name"]), arguments=str(made["arguments"]))
