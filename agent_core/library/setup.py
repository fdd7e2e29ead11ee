"""The parts that an agent gives to each of its tasks."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec import Struct

from agent_core.messages import ToolCall
from agent_core.orchestration.brief import Brief, Hands
from agent_core.questions import Answer, Question


class Setup(Struct, frozen=True, kw_only=True):
    """The parts of a task. `journal`: the folder of the tasks' journals; None: nothing outlives the
    process. `begin` receives the dollars that the task spent before a restart. `call`: the task is
    this one call, without a model."""

    brief: Brief
    hands: Hands
    answer: Callable[[Question], Awaitable[Answer]]
    begin: Callable[[float], None]
    journal: Path | None = None
    call: ToolCall | None = None
