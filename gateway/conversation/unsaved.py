"""Records that were made and could not be committed: they are committed first when it works again.

So no model is asked twice and no tool's outcome is forgotten because the store failed for a while.
They live in this process only: a crash loses them, as it loses a call under way.
"""

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from agent_core.journal import (
    Began,
    Emitted,
    Failed,
    Noted,
    Record,
    Replied,
    Steered,
    ToolFinished,
    ToolStarted,
)
from gateway.store.rows import TurnRow

_Kept: TypeAlias = Began | Emitted | Failed | Noted | Replied | Steered | ToolFinished | ToolStarted


class Unsaved(Struct, kw_only=True):
    """Records of one turn whose commits failed, in order.

    `count`: its records in the store. `stored`: the turn itself is stored too; otherwise `done` are
    the inbox rows that begin it. What people did (answers, steering, a stop) is not here: those are
    inbox rows, which wait.
    """

    turn: TurnRow
    stored: bool
    count: int
    done: tuple[int, ...]
    records: list[Record]
    complete: bool = True
    """False once something came that has to happen again: nothing behind it is kept."""

    def add(self, records: Sequence[Record]) -> None:
        """Add the records of another failed commit."""
        for record in records:
            taken = isinstance(record, Steered) and bool(record.rows)
            self.complete = self.complete and isinstance(record, _Kept) and not taken
            if self.complete:
                self.records.append(record)


class RefusedCommit(Struct, frozen=True, kw_only=True):
    """A commit that the store will never take: its `turn`, or the inbox `rows` it was about.
    `again`: it was the commit by which the turn was to end."""

    turn: str
    rows: tuple[int, ...]
    why: str
    again: bool = False
