"""A turn begins with what is remembered where it runs, in its recorded brief."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_core.memory.documents import Remembered
from agent_core.memory.recall import block
from agent_core.orchestration.brief import Brief
from gateway.sessions.reading import Asked
from gateway.store.rows import Thread, TurnRow

if TYPE_CHECKING:
    from gateway.sessions.session import Session


async def remembered(session: "Session", row: TurnRow) -> Remembered | None:
    """What the turn `row` is to know, None where nothing is ever remembered. StoreFailed."""
    memories, off = session.services.memory, session.row.settings.memory == "off"
    if memories is None:
        return None
    return await memories.at(session.conversation, row.sender, lambda: off).read()


def recalled(brief: Brief, now: Remembered | None, seen: Thread, asked: Asked) -> Brief:
    """`brief` with `now` at the end of its text, unless the model has that before its eyes."""
    if now is None:
        return brief
    text = block(now, (message for messages in seen for message in messages))
    if not text:
        return brief
    said = brief.said or asked.said
    return replace(brief, text=f"{brief.text}\n\n{text}", recalled=text, said=said)
