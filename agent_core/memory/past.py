"""What is found of earlier conversations."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct


class PastTalk(Struct, frozen=True, kw_only=True):
    """Part of an earlier conversation: its title, when it ended (seconds since 1970), and what
    was said around the words."""

    title: str
    at: float
    text: str


PastSearch: TypeAlias = Callable[[str], Awaitable[tuple[PastTalk, ...]]]
"""The parts that hold all words, the best first; without words the newest."""
