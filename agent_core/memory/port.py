"""The memory as a turn uses it."""

from typing import Protocol

from agent_core.memory.documents import Change, ChangeOutcome, MemoryDocuments


class Memory(Protocol):
    """The memory of a turn's place, without anything that may not be seen there."""

    @property
    def off(self) -> bool:
        """People have switched it off: nothing is read or stored."""

    @property
    def personal(self) -> bool:
        """True if there is a USER.md: one person is here alone."""

    async def read(self) -> MemoryDocuments:
        """Return both documents; nothing while it is off."""

    async def change(self, change: Change, key: str) -> ChangeOutcome:
        """Store `change`. A second time with the same `key` it changes nothing more. Raises
        nothing that the agent decides about."""
