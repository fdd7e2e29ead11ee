"""Tells the chat of stored entries: a quiet line for each."""

from agent_core.events import MemorySaved
from gateway.texts import say
from gateway.views import Notice


def make_notice(event: MemorySaved, language: str) -> Notice:
    """Make the line about an entry that was remembered or forgotten."""
    key = "memory_dropped" if event.action == "remove" else "memory_saved"
    return Notice(text=say(key, language, text=event.text), quiet=True)  # type: ignore[arg-type]
