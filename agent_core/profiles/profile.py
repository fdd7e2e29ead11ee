"""A profile: an agent's purpose as data. Tools, further instructions, limits."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from msgspec import Struct

from agent_core.messages import Message


class Profile(Struct, frozen=True, kw_only=True):
    """`tools`: entries of a tool set, all that it may use. `shown`: patterns of those that each
    request shows; the others are found. `few`: those shown to a model with a small window. `needs`:
    tools that it is made for. `max_steps`: rounds of a turn; `max_messages`: of the history, 0 for
    all."""

    name: str
    prompt: str
    tools: tuple[str, ...] = ("*",)
    shown: tuple[str, ...]
    few: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    max_steps: int = 0
    max_messages: int = 100

    def list_missing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the tools it needs that are not among `names`."""
        known = tuple(names)
        return tuple(
            need for need in self.needs if not any(fnmatchcase(name, need) for name in known)
        )

    def shows(self, name: str) -> bool:
        """Return True if each request shows the tool `name`."""
        return any(fnmatchcase(name, pattern) for pattern in self.shown)


def select_recent(history: tuple[Message, ...], most: int) -> tuple[Message, ...]:
    """The newest messages, at most `most` and at least the last turn; begins with a person's.

    The place of the cut moves in leaps of half of `most`: between two of them, each request
    begins with the whole of the one before it.
    """
    if not most or len(history) <= most:
        return history
    leap = max(1, most // 2)
    cut = -(-(len(history) - most) // leap) * leap
    begins = [n for n, message in enumerate(history) if message.role == "user"]
    start = next((n for n in begins if n >= cut), begins[-1] if begins else 0)
    return history[start:]
