"""Runs a turn's code over its journal; where the two diverge, continues from the records."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from agent_core.context.transcript import messages_of
from agent_core.errors import Diverged
from agent_core.events import ReplayDiverged
from agent_core.journal import Broke, Record
from agent_core.messages import Message
from agent_core.orchestration.brief import TurnResult
from agent_core.scope import UNKNOWN, Scope, Turn

Code: TypeAlias = Callable[[Scope, tuple[Message, ...]], Awaitable[TurnResult]]
"""Turn code: receives its scope and, when it continues from records, the messages so far."""

MAX_BREAKS = 3


async def drive(turn: Turn, code: Code) -> TurnResult:
    """Run `code` to its end in this task. Raises Suspend when the turn stops without an end."""
    task = asyncio.current_task()
    turn.tasks.add(task)
    try:
        while True:
            breaks = [record for record in turn.journal.records if isinstance(record, Broke)]
            try:
                return await code(*_start(turn, breaks))
            except Diverged as error:
                turn.check()
                if len(breaks) >= MAX_BREAKS:
                    raise
                await _note(turn, len(breaks) + 1, str(error))
    finally:
        turn.tasks.discard(task)


def _start(turn: Turn, breaks: list[Broke]) -> tuple[Scope, tuple[Message, ...]]:
    if not breaks:
        return Scope(turn), ()
    before: list[Record] = []
    for record in turn.journal.records:
        if record is breaks[-1]:
            break
        before.append(record)
    return Scope(turn, f"after-{len(breaks)}/"), messages_of(before, UNKNOWN)


async def _note(turn: Turn, n: int, text: str) -> None:
    await turn.journal.barrier(Broke(key=f"broke-{n}", at=text, text=text))
    Scope(turn, f"after-{n}/").emit(ReplayDiverged(key=f"broke-{n}", text=text), "diverged")
