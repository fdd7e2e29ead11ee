"""Finds the conversation of a command that names none: Slack does not say in which thread a slash
command was given."""

from collections.abc import Mapping
from typing import Protocol

from gateway.conversation.question_rows import list_open_questions
from gateway.feature import Command
from gateway.messages import CommandGiven, Conversation, read_conversation
from gateway.ports import Summary, channel_scope, person_scope
from gateway.store.port import Store

NEWEST = 20
"""Conversations that are looked at."""
LAST_TURNS = 3
"""Turns of each that are looked at for the person."""


class RunsFor(Protocol):
    """Tells whose turn a session is running."""

    def runs_for(self) -> str: ...


async def find_talk(
    store: Store,
    sessions: Mapping[str, RunsFor],
    commands: Mapping[str, Command],
    given: CommandGiven,
) -> Conversation:
    """Return the conversation in that channel where the sender's turn runs, else where something of
    theirs waits, else their newest one; the channel itself if there is none. In a group only
    commands about what is said are for the newest one, others for the channel. Raises StoreFailed.
    """
    where, key = given.conversation, given.sender.key
    for address, session in sessions.items():
        if session.runs_for() == key and _is_in(address, where):
            return read_conversation(address)
    scope = person_scope(key) if where.private else channel_scope(where)
    recent = [one for one in await store.recent(scope, NEWEST) if _is_in(one.conversation, where)]
    for one in recent:
        if one.state != "idle" and await _waits_for(store, one, key):
            return read_conversation(one.conversation)
    if where.private:
        return read_conversation(recent[0].conversation) if recent else where
    command = commands.get(given.name)
    for one in recent if command is not None and command.of_talk else ():
        if await _has_asked(store, one, key):
            return read_conversation(one.conversation)
    return where


def _is_in(address: str, where: Conversation) -> bool:
    there = read_conversation(address)
    same = (there.platform, there.account) == (where.platform, where.account)
    return same and there.channel == where.channel


async def _waits_for(store: Store, summary: Summary, key: str) -> bool:
    asked = await list_open_questions(store, summary.conversation)
    return any(question.asker == key for _, question in asked)


async def _has_asked(store: Store, summary: Summary, key: str) -> bool:
    """Return True if one of the last turns is of the person `key`."""
    for row in reversed(await store.newest(summary.conversation, LAST_TURNS)):
        turn = await store.turn(row.turn) if row.turn else None
        if turn is not None and turn.sender == key:
            return True
    return False
