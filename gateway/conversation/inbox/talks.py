"""Finds the conversation of a command that names none: Slack does not say in which thread a slash
command was given."""

from collections.abc import Mapping
from typing import Protocol

from gateway.conversation.question_rows import list_open_questions
from gateway.messages import CommandGiven, Conversation, read_conversation
from gateway.ports import Summary, channel_scope, person_scope
from gateway.store.port import Store

NEWEST = 20
"""Conversations that are looked at."""


class RunsFor(Protocol):
    """Tells whose turn a session is running."""

    def runs_for(self) -> str: ...


async def find_talk(
    store: Store, sessions: Mapping[str, RunsFor], given: CommandGiven
) -> Conversation:
    """Return the conversation in that channel where the sender's turn runs, else where something of
    theirs waits, else, in a private chat, their newest one; the channel itself if there is none.
    Raises StoreFailed."""
    where, key = given.conversation, given.sender.key
    for address, session in sessions.items():
        if session.runs_for() == key and _is_in(address, where):
            return read_conversation(address)
    scope = person_scope(key) if where.private else channel_scope(where)
    recent = [one for one in await store.recent(scope, NEWEST) if _is_in(one.conversation, where)]
    for one in recent:
        if one.state != "idle" and await _waits_for(store, one, key):
            return read_conversation(one.conversation)
    return read_conversation(recent[0].conversation) if where.private and recent else where


def _is_in(address: str, where: Conversation) -> bool:
    there = read_conversation(address)
    same = (there.platform, there.account) == (where.platform, where.account)
    return same and there.channel == where.channel


async def _waits_for(store: Store, summary: Summary, key: str) -> bool:
    asked = await list_open_questions(store, summary.conversation)
    return any(question.asker == key for _, question in asked)
