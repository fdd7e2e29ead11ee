"""Strings of platforms' payloads, made such that they can be stored and sent on, and the commands
among them."""

import re
import unicodedata
from typing import Any

from msgspec import Struct

from gateway.command_texts import take_word

BARE_MENTION = "[I was mentioned, without other words. What is meant may stand before it.]"
"""The text of a message that is only a mention of the agent."""


MAX_COMMAND = 128
SLASHES = ("/", "／")
COMMAND = re.compile(r"/([A-Za-z0-9_]{1,32})(?:@(\w{1,64}))?")


class WrittenCommand(Struct, frozen=True, kw_only=True):
    """`/name@bot arguments`, as a person wrote it."""

    name: str
    bot: str = ""
    arguments: str = ""


def read_command(text: str) -> WrittenCommand | None:
    """Parse a command, None if `text` is none."""
    if not text.startswith(SLASHES):
        return None
    word, arguments = take_word(text)
    given = COMMAND.fullmatch(normalize_width(word)) if len(word) <= MAX_COMMAND else None
    if given is None:
        return None
    return WrittenCommand(name=given[1].lower(), bot=given[2] or "", arguments=arguments)


def normalize_width(name: str) -> str:
    """Return a name without the full width in which input methods of East Asia write it."""
    return unicodedata.normalize("NFKC", name)


def read_string(value: object) -> str:
    """Return a string that can be stored, with lone surrogates replaced; "" for any other value."""
    if not isinstance(value, str):
        return ""
    if value.isascii():
        return value
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean_strings(payload: Any) -> None:
    """Change each string in `payload`, a value that JSON gave, into one that can be stored."""
    waiting = [payload]
    while waiting:
        holder = waiting.pop()
        if isinstance(holder, dict):
            for key in [key for key in holder if not key.isascii()]:
                holder[read_string(key)] = holder.pop(key)
        places = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for key, value in list(places):
            if isinstance(value, str):
                holder[key] = read_string(value)
            elif isinstance(value, dict | list):
                waiting.append(value)
