"""Finds the conversation of a command that names none: Slack does not say in which thread a slash
command was given."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Protocol

from agent_core import ambient
from agent_core.questions import Approval
from gateway.approvers import DEFAULT, Person
from gateway.conversation.question_rows import list_open_questions
from gateway.conversation.services import Services
from gateway.feature import Command
from gateway.messages import CommandGiven, Conversation, read_conversation, sender_of
from gateway.ports import Summary, channel_scope, person_scope
from gateway.store.port import Store
from gateway.store.rows import QuestionRow

DECIDING = ("approve", "deny", "approvals")
NEWEST = 20
"""Conversations that are looked at."""
LAST_TURNS = 3
"""Turns of each that are looked at for the person."""


class AskedSession(Protocol):
    """Tells whose turn a session is running, or will."""

    def find_asker(self) -> str: ...


async def find_talk(
    services: Services,
    sessions: Mapping[str, AskedSession],
    commands: Mapping[str, Command],
    given: CommandGiven,
) -> Conversation:
    """Return the conversation in that channel where the sender's turn runs, else where something of
    theirs waits, else their newest one; the channel itself if there is none. In a group only
    commands about what is said are for the newest one, others for the channel. A command that
    decides is first for where something waits for the sender to decide; an admin's stop is also for
    the only turn that runs in the channel. Raises StoreFailed.
    """
    where, key, store = given.conversation, given.sender.key, services.store
    scope = person_scope(key) if where.private else channel_scope(where)
    recent = [one for one in await store.recent(scope, NEWEST) if _is_in(one.conversation, where)]
    if given.name in DECIDING:
        person = await services.access.person(given.sender)
        if (waiting := await _find_waiting(store, recent, partial(_decides, person))) is not None:
            return waiting
    running = {at: one.find_asker() for at, one in sessions.items() if _is_in(at, where)}
    if mine := [at for at, whose in running.items() if whose == key]:
        return read_conversation(mine[0])
    others = [at for at, whose in running.items() if whose]
    role = await services.access.learn(given.sender)
    if given.name == "stop" and len(others) == 1 and role == "admin":
        return read_conversation(others[0])
    if (begun := await _find_begun(store, recent, key)) is not None:
        return begun
    own = await _find_waiting(store, recent, lambda question: question.asker == key)
    if own is not None:
        return own
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


async def _find_begun(store: Store, recent: Iterable[Summary], key: str) -> Conversation | None:
    """Return the first of the conversations in which a message of the person waits or their turn is
    cut off, also where no session has taken it up yet, as after a restart."""
    for one in recent:
        waiting = (sender_of(row.inbound) for row in await store.arrivals(one.conversation, 0))
        shown = await store.latest(one.conversation, LAST_TURNS) if one.state != "idle" else ()
        turns = [await store.turn(view.turn) for view in shown]
        running = (turn for turn in turns if turn is not None and turn.status == "running")
        if key in {sender.key for sender in waiting if sender} | {turn.sender for turn in running}:
            return read_conversation(one.conversation)
    return None


async def _find_waiting(
    store: Store, recent: Iterable[Summary], meant: Callable[[QuestionRow], bool]
) -> Conversation | None:
    """Return the first of the conversations with an open question that is `meant`."""
    for one in recent:
        if one.state == "idle":
            continue
        asked = await list_open_questions(store, one.conversation)
        if any(meant(question) for _, question in asked):
            return read_conversation(one.conversation)
    return None


def _decides(person: Person, question: QuestionRow) -> bool:
    """Return True for an approval that the person may give."""
    if not isinstance(question.question, Approval):
        return False
    rule, waited = question.deciders or DEFAULT, ambient.now() - question.asked
    return rule.entitle(person, question.asker, waited)


async def _has_asked(store: Store, summary: Summary, key: str) -> bool:
    """Return True if one of the last turns is of the person `key`."""
    for row in reversed(await store.newest(summary.conversation, LAST_TURNS)):
        turn = await store.turn(row.turn) if row.turn else None
        if turn is not None and turn.sender == key:
            return True
    return False
