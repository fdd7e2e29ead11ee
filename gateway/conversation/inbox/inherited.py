"""Settings of a channel that its new threads begin with."""

from msgspec.structs import replace

from gateway.conversation.state import ConversationState
from gateway.store.rows import ConversationRow, ConversationSettings


async def inherit_settings(state: ConversationState) -> None:
    """Give the thread, if it is new, the settings of its channel, where a thread is about one task
    and commands are given in the channel. Later changes there leave it alone. StoreFailed."""
    where, abilities = state.conversation, state.adapter.abilities
    tasks = abilities.task_threads or not abilities.replies
    if where.private or not tasks or not _is_new(state.row):
        return
    channel = await state.services.store.settings(replace(where, thread="").id)
    chosen = _select(channel)
    if chosen != state.row.settings:
        state.configure(chosen)


def _is_new(row: ConversationRow) -> bool:
    return not row.end and not row.title and row.settings == ConversationSettings()


def _select(channel: ConversationSettings) -> ConversationSettings:
    """Return what people chose by commands, without approvals and what it works with."""
    return replace(channel, rules=(), people=(), workspace="", tools="")
