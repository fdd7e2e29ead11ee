"""Background work beside the sessions, owned by the host's task group."""

from collections.abc import Callable, Coroutine
from typing import Protocol

Work = Callable[[], Coroutine[object, object, None]]


class Spawn(Protocol):
    """Starts background work of a session."""

    def __call__(self, work: Work, name: str) -> None: ...
