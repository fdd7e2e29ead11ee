"""What an agent hands to each of its tasks."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec import Struct

from agent_core.messages import ToolCall
from agent_core.orchestration.brief import Brief, Hands
from agent_core.questions import Answer, Question


class Setup(Struct, frozen=True, kw_only=True):
    """What a task begins with, works with, and whom it asks.

    `journal`: the folder of the tasks' journals; None: nothing outlives the process. `begin` is
    told the dollars that the task took in an earlier life. `call`: all that the task does, without
    a model.
    """

    brief: Brief
    hands: Hands
    answer: Callable[[Question], Awaitable[Answer]]
    begin: Callable[[float], None]
    journal: Path | None = None
    call: ToolCall | None = None
