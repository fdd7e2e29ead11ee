"""Adds the instructions that hold in a conversation to a turn's recorded system prompt."""

from functools import partial

from msgspec.structs import replace

from agent_core.context.prompt import render_instructions
from agent_core.orchestration.brief import Brief
from gateway.conversation.inbox.reading import TurnInput
from gateway.feature import AddToBrief, Context
from gateway.store.rows import Thread, TurnRow


async def add_instructions(context: Context, row: TurnRow) -> AddToBrief | None:
    """Return the instructions of the operator and the conversation's people; None if there are
    none."""
    people = context.state.row.settings.instructions
    text = render_instructions(list_operators(context), people)
    return partial(_add, text) if text else None


def list_operators(context: Context) -> tuple[str, ...]:
    """The operator's for this conversation: for all, for its platform, for its profile."""
    files, state = context.services.instructions, context.state
    names = (state.conversation.platform, state.row.settings.profile)
    return files.select(*names) if files is not None else ()


def _add(text: str, brief: Brief, seen: Thread, asked: TurnInput) -> Brief:
    return replace(brief, system=f"{brief.system}\n\n{text}")
