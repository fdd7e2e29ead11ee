"""Messages made short where a model holds no more of them."""

import json

from msgspec.structs import replace

from agent_core.messages import Message, Part, Picture, Text, Thinking, ToolCall, ToolResult

MAX_SHORT = 1_500
"""Characters that stay of each text."""
LEFT_OUT = "(the picture {path} is left out: it did not fit)"


def shorten_message(message: Message) -> Message:
    """`message` with the beginning and the end of what is long in it; calls and results stay
    together, pictures are named, reasoning goes."""
    parts = (_shorten(part) for part in message.parts)
    return Message(role=message.role, parts=tuple(part for part in parts if part is not None))


def shorten(text: str, most: int) -> str:
    """`text`, or its two ends where it has more than `most` characters."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}\n[…]\n{text[-half:]}"


def _shorten(part: Part) -> Part | None:
    match part:
        case Text():
            return replace(part, text=shorten(part.text, MAX_SHORT))
        case ToolCall() if len(part.arguments) > MAX_SHORT:
            cut = shorten(part.arguments, MAX_SHORT)
            return replace(part, arguments=json.dumps({"cut": cut}, ensure_ascii=False))
        case ToolResult():
            seen = "".join(f"\n{LEFT_OUT.format(path=one.path)}" for one in part.pictures)
            content = f"{shorten(part.content, MAX_SHORT)}{seen}"
            return replace(part, content=content, pictures=())
        case Picture():
            return Text(text=LEFT_OUT.format(path=part.path))
        case Thinking():
            return None
        case _:
            return part
