"""Settings that a new thread begins with: in a group those of its channel, in a private chat those
of the newest talk there."""

from collections.abc import Sequence

from msgspec.structs import replace

from gateway.conversation.state import ConversationState
from gateway.messages import read_conversation, sender_of
from gateway.ports import person_scope
from gateway.store.rows import ConversationRow, ConversationSettings, InboxRow

NEWEST = 5
"""Conversations of a person that are looked at."""


async def inherit_settings(state: ConversationState, rows: Sequence[InboxRow]) -> None:
    """Give the thread, if it is new, settings chosen before, where a thread is about one task and
    commands are given outside of it. `rows`: what begins it. Later changes elsewhere leave it
    alone. StoreFailed."""
    where, abilities = state.conversation, state.adapter.abilities
    tasks = abilities.task_threads or not abilities.replies
    if not tasks or not _is_new(state.row):
        return
    source = await _find_newest(state, rows) if where.private else replace(where, thread="").id
    chosen = _select(await state.services.store.settings(source))
    if chosen != state.row.settings:
        state.configure(chosen)


async def _find_newest(state: ConversationState, rows: Sequence[InboxRow]) -> str:
    """Return the address of the person's newest other talk in this private chat."""
    where = state.conversation
    senders = filter(None, (sender_of(row.inbound) for row in rows))
    key = next((sender.key for sender in senders), "")
    known = await state.services.store.recent(person_scope(key), NEWEST) if key else ()
    for one in known:
        there = read_conversation(one.conversation)
        if there != where and replace(there, thread=where.thread) == where:
            return one.conversation
    return replace(where, thread="").id


def _is_new(row: ConversationRow) -> bool:
    return not row.end and not row.title and row.settings == ConversationSettings()


def _select(channel: ConversationSettings) -> ConversationSettings:
    """Return what people chose by commands, without approvals and what it works with."""
    return replace(channel, rules=(), people=(), workspace="", tools="")
