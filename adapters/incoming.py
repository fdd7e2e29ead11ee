"""Strings of platforms' payloads, made such that they can be stored and sent on."""

from typing import Any

BARE_MENTION = "[I was mentioned, without other words. What is meant may stand before it.]"
"""The text of a message that is only a mention of the agent."""


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
