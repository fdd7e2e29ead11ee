"""First sends of a conversation's messages, each once where the platform can recognise one that is
made again: after a lost answer, or by the process that comes after a crash."""

import logging
from typing import cast

from msgspec.structs import replace

from agent_core import ambient
from gateway.messages import Conversation, digest
from gateway.ports import Adapter, Recalling
from gateway.store.rows import OutboxRow

log = logging.getLogger("turnkeeper.outbox")


class FirstSends:
    """One conversation's. What was tried before is remembered by the name of the send."""

    def __init__(self, conversation: Conversation, adapter: Adapter) -> None:
        self._conversation = conversation
        self._adapter = adapter
        self._tried: set[str] = set()

    def resume(self, row: OutboxRow) -> OutboxRow:
        """`row`, whose send was found under way: in doubt, unless it can be made again."""
        log.warning("send_in_doubt", extra={"turn": row.turn, "view": row.name})
        self._tried.add(self._name(row, row.sending))
        if self.is_known(row):
            return replace(row, sending=-1)
        return replace(
            row, sending=-1, doubtful=True, copies=row.copies + 1, crashes=row.crashes + 1
        )

    def is_known(self, row: OutboxRow) -> bool:
        """The platform surely still knows what was sent of `row`."""
        return ambient.now() - row.at < self._adapter.abilities.recalls

    async def send(self, row: OutboxRow, index: int, payload: bytes) -> str:
        """The message's native id. One that stood there already is made to show `payload`."""
        answered = (row.answers,) if index == 0 and row.answers else ()
        if not self._adapter.abilities.recalls:
            return await self._adapter.send(self._conversation, payload, *answered)
        name = self._name(row, index)
        again = name in self._tried
        self._tried.add(name)
        adapter = cast(Recalling, self._adapter)
        native = await adapter.send_as(name, self._conversation, payload, *answered)
        if again:
            await self._adapter.edit(self._conversation, native, payload)
        self._tried.discard(name)
        return native

    def _name(self, row: OutboxRow, index: int) -> str:
        again = f" {row.anew}" if row.anew else ""
        name = f"{self._conversation.id} {row.turn} {row.name} {index}{again}"
        return digest(name.encode())
