"""What is stored is said in the chat: a quiet line for each entry."""

from agent_core.events import MemorySaved
from gateway.texts import say
from gateway.views import Notice


def make_notice(event: MemorySaved, language: str) -> Notice:
    """The line about an entry that is remembered from now on, or is not any more."""
    key = "memory_dropped" if event.action == "remove" else "memory_saved"
    return Notice(text=say(key, language, text=event.text), quiet=True)  # type: ignore[arg-type]
