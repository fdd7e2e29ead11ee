"""A tool's call in one line, for lists and decided cards. Pure."""

import json

from gateway.texts.isolation import isolate
from gateway.texts.signs import visible
from gateway.texts.tool_names import name_tool

MAX_SUMMARY, HEAD, TAIL = 100, 60, 35
"""Characters of a call's summary: the maximum, and those of head and tail if it is longer."""
_SAYS_MOST = ("command", "code", "url", "path", "title")
"""Arguments that summarise a call; without one of them its first text does."""


def summarize_call(tool: str, arguments: str, language: str = "") -> str:
    """Return the tool's name for people and a summary of the call's arguments, with no sign that
    hides or turns text."""
    title, known = visible(name_tool(tool, language)), read_arguments(arguments) or {}
    texts = (known[name] for name in (*_SAYS_MOST, *known) if name in known)
    words = next((text for text in texts if isinstance(text, str) and text.strip()), "")
    shown = visible(" ".join(words.split()), exact=True)
    if len(shown) > MAX_SUMMARY:
        shown = f"{shown[:HEAD]} … {shown[-TAIL:]}"
    return f"{title}: {isolate(shown)}" if shown else title


def head_line(tool: str, summary: str, language: str = "") -> str:
    """Return the start of an activity line, before its summary: the tool's name for people."""
    return f"{visible(name_tool(tool, language))}{':' if summary.strip() else ''}"


def read_arguments(arguments: str) -> dict[str, object] | None:
    """The arguments by name; None if they are no object, or name one twice, somewhere."""
    try:
        found = json.loads(arguments or "{}", object_pairs_hook=_make_object)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _make_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name stands there twice")
    return made
