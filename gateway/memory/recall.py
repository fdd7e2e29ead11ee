"""A turn begins with what is remembered where it runs, in its recorded brief."""

from msgspec.structs import replace

from agent_core.memory.documents import Remembered
from agent_core.memory.recall import block
from agent_core.orchestration.brief import Brief
from gateway.feature import Context
from gateway.sessions.reading import Asked
from gateway.store.rows import Thread, TurnRow


async def remembered(context: Context, row: TurnRow) -> Remembered | None:
    """What the turn `row` is to know, None where nothing is ever remembered. StoreFailed."""
    memories, off = context.services.memory, context.state.row.settings.memory == "off"
    if memories is None:
        return None
    return await memories.at(context.state.conversation, row.sender, lambda: off).read()


def recalled(brief: Brief, now: Remembered | None, seen: Thread, asked: Asked) -> Brief:
    """`brief` with `now` at the end of its text, unless the model has that before its eyes."""
    if now is None:
        return brief
    text = block(now, (message for messages in seen for message in messages))
    if not text:
        return brief
    said = brief.said or asked.said
    return replace(brief, text=f"{brief.text}\n\n{text}", recalled=text, said=said)
