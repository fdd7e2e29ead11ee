"""Stores changes of the memory from within a turn: each once, and people are told."""

from functools import partial

from msgspec.structs import replace

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.events import MemorySaved
from agent_core.memory.documents import Change, ChangeOutcome, find_entry
from agent_core.memory.port import Memory
from agent_core.scope import Scope


async def keep(
    scope: Scope, memory: Memory, changes: tuple[Change, ...]
) -> tuple[ChangeOutcome, ...]:
    """Store `changes` and return their results. Their key, and the entries that they name, are
    journaled before the first one is stored: after a crash the same key finds what is stored
    already, and people are still told which entry it was."""
    key = await scope.once("memory-key", ambient.new_id, kind=str)
    meant = [
        await scope.once(f"meant-{n}", partial(_resolve_change, memory, change), kind=Change)
        for n, change in enumerate(changes)
    ]
    await scope.show()
    done: list[ChangeOutcome] = []
    for n, change in enumerate(meant):
        work = partial(memory.change, change, f"{key}-{n}")
        outcome = await scope.once(f"memory-{n}", work, kind=ChangeOutcome)
        if outcome.shown:
            saved = MemorySaved(action=change.action, target=change.target, text=outcome.shown)
            scope.emit(saved, f"memory-{n}")
        done.append(outcome)
    await scope.show()
    return tuple(done)


async def _resolve_change(memory: Memory, change: Change) -> Change:
    """`change` with the whole entry that its words name, where there is such a one."""
    if change.action == "add":
        return change
    now = await memory.read()
    entries = now.memory if change.target == "memory" else now.user
    try:
        return replace(change, old=entries[find_entry(entries, change)])
    except ToolFailed:
        return change
