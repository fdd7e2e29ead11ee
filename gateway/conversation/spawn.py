"""Background work: run beside the sessions, owned by the host's task group."""

from collections.abc import Callable, Coroutine
from typing import Protocol

Work = Callable[[], Coroutine[object, object, None]]


class Spawn(Protocol):
    """Runs something beside the session."""

    def __call__(self, work: Work, name: str) -> None: ...
