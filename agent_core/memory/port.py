"""What a turn asks of its memory."""

from typing import Protocol

from agent_core.memory.documents import Change, ChangeOutcome, MemoryDocuments


class Memory(Protocol):
    """What is remembered where a turn runs. What may not be seen there is not in it."""

    @property
    def off(self) -> bool:
        """People have switched it off: nothing is read or stored."""

    @property
    def personal(self) -> bool:
        """There is a USER.md: one person is here alone."""

    async def read(self) -> MemoryDocuments:
        """All of it; nothing while it is off."""

    async def change(self, change: Change, key: str) -> ChangeOutcome:
        """Store `change`. A second time with the same `key` it changes nothing more. Raises
        nothing that the agent decides about."""
