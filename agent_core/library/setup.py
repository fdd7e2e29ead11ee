"""What an agent hands to each of its tasks."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec import Struct

from agent_core.orchestration.brief import Brief, Hands
from agent_core.questions import Answer, Question


class Setup(Struct, frozen=True, kw_only=True):
    """What a task begins with, works with, and whom it asks.

    `journal`: the folder of the tasks' journals; None: nothing outlives the process.
    """

    brief: Brief
    hands: Hands
    answer: Callable[[Question], Awaitable[Answer]]
    journal: Path | None = None
