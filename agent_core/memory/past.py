"""Results of a search in earlier conversations."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct


class PastTalk(Struct, frozen=True, kw_only=True):
    """A part of an earlier conversation: its title, its end (seconds since 1970), and the text
    around the words."""

    title: str
    at: float
    text: str


PastSearch: TypeAlias = Callable[[str], Awaitable[tuple[PastTalk, ...]]]
"""The parts that hold all words, the best first; without words the newest."""
