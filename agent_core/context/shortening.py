"""Shortens messages for a model with too small a window."""

import json
from collections.abc import Callable

from msgspec.structs import replace

from agent_core.messages import Message, Part, Picture, Text, Thinking, ToolCall, ToolResult

MAX_SHORT = 1_500
"""Characters that stay of each text."""
SIZES = (MAX_SHORT, 500, 160, 40)
"""Further sizes, tried one after the other if that is still too much."""
LEFT_OUT = "(the picture {path} is left out: it did not fit)"
Fits = Callable[[tuple[Message, ...]], bool]


def shorten_message(message: Message) -> Message:
    """Cut the middle of long texts in `message`; calls and results stay together, pictures are
    named, reasoning is dropped."""
    parts = (_shorten(part, MAX_SHORT, ()) for part in message.parts)
    return Message(role=message.role, parts=tuple(part for part in parts if part is not None))


def squeeze(
    messages: tuple[Message, ...], spared: tuple[str, ...], enough: Fits, fits: Fits
) -> tuple[Message, ...]:
    """Shorten `messages` only as much as needed: until `enough` room is left for new ones,
    otherwise until they fit, otherwise as much as possible. The words `spared` stay whole."""
    tried = [_shorten_all(messages, most, spared) for most in SIZES]
    for wanted in (enough, fits):
        for shorter in tried:
            if wanted(shorter):
                return shorter
    return tried[-1]


def _shorten_all(
    messages: tuple[Message, ...], most: int, spared: tuple[str, ...]
) -> tuple[Message, ...]:
    """Cut each text of `messages` to `most` characters; where they occur last, the words `spared`
    stay whole."""
    made = list[Message]()
    for message in reversed(messages):
        parts = list[Part]()
        for part in reversed(message.parts):
            if (short := _shorten(part, most, spared)) is not None:
                parts.insert(0, short)
            if short is not None and message.role == "user":
                spared = tuple(words for words in spared if not _holds(short, words))
        made.insert(0, Message(role=message.role, parts=tuple(parts)))
    return tuple(made)


def keeps(message: Message, words: str) -> bool:
    """Return True if a person's `words` occur in the message where squeezing keeps them whole."""
    return message.role == "user" and any(_holds(part, words) for part in message.parts)


def _holds(part: Part, words: str) -> bool:
    if not isinstance(part, Text):
        return False
    return words in part.text if part.condensed else part.text.startswith(words)


def shorten(text: str, most: int) -> str:
    """`text`, or its two ends where it has more than `most` characters."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}\n[…]\n{text[-half:]}"


def _shorten(part: Part, most: int, spared: tuple[str, ...]) -> Part | None:
    match part:
        case Text():
            return replace(part, text=_shorten_around(part, most, spared))
        case ToolCall() if len(part.arguments) > most:
            cut = shorten(part.arguments, most)
            return replace(part, arguments=json.dumps({"cut": cut}, ensure_ascii=False))
        case ToolResult():
            seen = "".join(f"\n{LEFT_OUT.format(path=one.path)}" for one in part.pictures)
            content = f"{shorten(part.content, most)}{seen}"
            return replace(part, content=content, pictures=())
        case Picture():
            return Text(text=LEFT_OUT.format(path=part.path))
        case Thinking():
            return None
        case _:
            return part


def _shorten_around(part: Text, most: int, spared: tuple[str, ...]) -> str:
    text = part.text
    for words in spared:
        at = text.rfind(words) if part.condensed else 0 if text.startswith(words) else -1
        if at >= 0:
            end = at + len(words)
            return f"{shorten(text[:at], most)}{words}{shorten(text[end:], most)}"
    return shorten(text, most)
