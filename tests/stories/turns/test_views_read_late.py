"""A message is delivered while its row is read from the store: it is not sent again."""

import asyncio
from pathlib import Path

import pytest

from gateway.store.rows import OutboxRow
from tests.fakes.world import ROOM, Life


class SlowReads:
    """A store whose rows of views arrive when the platform has taken the message."""

    def __init__(self, life: Life) -> None:
        self._life, self._read = life, life.store.outbox
        self.sent = asyncio.Event()
        """The platform answers from now on."""
        self.stale: list[OutboxRow] = []

    async def outbox(self, conversation: str, turn: str) -> tuple[OutboxRow, ...]:
        rows: tuple[OutboxRow, ...] = await self._read(conversation, turn)
        state = self._life.host.sessions[ROOM.id].state
        self.stale += [row for row in rows if row.sending >= 0]
        self.sent.set()
        while any(key[0] == turn for key in state.outbox.rows):
            await asyncio.sleep(0)
        return rows


@pytest.mark.parametrize("words", ["hello", "do note"])
async def test_what_is_delivered_while_it_is_read_is_not_sent_again(
    words: str, tmp_path: Path
) -> None:
    life = Life(tmp_path)
    async with life.living():
        reads, send = SlowReads(life), life.adapter.send
        on_its_way = asyncio.Event()

        async def hold(conversation: object, payload: bytes, answers: str = "") -> str:
            if b"ack" in payload or b"done" in payload:
                on_its_way.set()
                await reads.sent.wait()
            return await send(conversation, payload, answers)  # type: ignore[arg-type]

        life.adapter.send = hold  # type: ignore[assignment]
        life.store.outbox = reads.outbox  # type: ignore[attr-defined]
        await life.say("m1", words)
        await on_its_way.wait()
        state = life.host.sessions[ROOM.id].state
        ((turn, name),) = [key for key in state.outbox.rows if key[1] == "reply"]
        state.occupied = True  # the session is at work, as when it begins the next turn
        assert await state.redraw(turn, name, lambda view: view) == ()
        state.occupied = False
        state.wake()
        await life.quiet()
        assert reads.stale, "the store said that it is on its way"
        sent = [line for line in life.ledger.all("send") if line["view"]["kind"] == "reply"]
        assert len(sent) == 1, sent
