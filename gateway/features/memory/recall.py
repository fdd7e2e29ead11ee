"""Adds the memory that holds in a conversation to a turn's recorded brief."""

from functools import partial
from itertools import chain

from agent_core.memory.documents import MemoryDocuments
from agent_core.memory.recall import block
from agent_core.orchestration.brief import Brief
from gateway.conversation.inbox.reading import TurnInput
from gateway.feature import AddToBrief, Context
from gateway.store.rows import Thread, TurnRow


async def recall(context: Context, row: TurnRow) -> AddToBrief | None:
    """Read the memory for the turn `row`; None if there is no memory. StoreFailed."""
    state, memories = context.state, context.services.memory
    if memories is None:
        return None
    off = state.row.settings.memory == "off"
    known = await memories.open_for(state.conversation, row.sender, lambda: off).read()
    return partial(_add_known, known)


def _add_known(known: MemoryDocuments, brief: Brief, seen: Thread, asked: TurnInput) -> Brief:
    """Put `known` at the end of the brief's text, unless the model has it before its eyes."""
    text = block(known, chain.from_iterable(seen))
    return brief.append(text, asked.said) if text else brief
