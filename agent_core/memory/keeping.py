"""Stores changes of the memory from within a turn: each once, and people are told."""

from functools import partial

from agent_core import ambient
from agent_core.events import MemorySaved
from agent_core.memory.documents import Change, Outcome
from agent_core.memory.port import Memory
from agent_core.scope import Scope


async def keep(scope: Scope, memory: Memory, changes: tuple[Change, ...]) -> tuple[Outcome, ...]:
    """What became of `changes`. The key that they are stored under stands in the journal before
    the first of them is stored: after a crash the same key finds what is stored already."""
    key = await scope.once("memory-key", ambient.new_id, kind=str)
    await scope.show()
    done: list[Outcome] = []
    for n, change in enumerate(changes):
        work = partial(memory.change, change, f"{key}-{n}")
        outcome = await scope.once(f"memory-{n}", work, kind=Outcome)
        if outcome.shown:
            saved = MemorySaved(action=change.action, target=change.target, text=outcome.shown)
            scope.emit(saved, f"memory-{n}")
        done.append(outcome)
    await scope.show()
    return tuple(done)
