"""Resumes an earlier conversation: finds those that may be shown here, and continues from one.

A group is shown only its own conversations, a person in private only those of their own accounts in
private.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from msgspec.structs import replace

from gateway.access.access import Access
from gateway.conversation.services import Services
from gateway.feature import Context
from gateway.features.history.parts import Found, ThreadPart, parts_of, search
from gateway.messages import Conversation, Sender, digest, read_conversation
from gateway.ports import channel_scope, parse_words, person_scope
from gateway.store.port import Store
from gateway.store.rows import HistoryPart, TranscriptRow

MAX_ROWS = 2_000
"""The newest transcript rows of a conversation that are looked through."""
MAX_PLACES = 500
"""The newest conversations that are looked through: of the group, or of each of the person's
accounts."""
LAST = 20
"""Newest rows that tell whose a private conversation is."""
NEWEST = 20
"""The newest conversations whose last parts are listed if no words are given."""
LISTED = 5


def name_part(part: HistoryPart) -> str:
    """Return a short and stable name of the part for a button."""
    spans = ",".join(f"{start}-{end}" for start, end in part.shows)
    return digest(f"{part.conversation} {spans}".encode())


class PastDeps(Protocol):
    """The services for a search of conversations."""

    @property
    def store(self) -> Store:
        """The store that is searched."""

    @property
    def access(self) -> Access:
        """The roles and linked accounts of people."""


async def find(context: Context, sender: Sender, words: str) -> list[Found]:
    """The best parts for `words`; the list that /resume and a number refers to."""
    found = await look_for(context.services, context.state.conversation, sender, words)
    places = tuple(
        HistoryPart(conversation=one.part.conversation, title=one.part.title, shows=one.part.shows)
        for one in found
    )
    context.state.row = replace(context.state.row, found=places)
    return found


async def look_for(
    services: PastDeps, where: Conversation, sender: Sender, words: str
) -> list[Found]:
    """Return the best parts for `words` that may be shown to the sender at `where`; without words
    the newest."""
    places = await _places(services, where, sender, MAX_PLACES if parse_words(words) else NEWEST)
    accounts = await services.access.accounts(sender.key)
    found = await services.store.find_holding(places, parse_words(words), MAX_ROWS)

    def look() -> list[Found]:
        parts: list[ThreadPart] = []
        for place, rows in found:
            if place == where.id or _is_shown(where, accounts, place, rows[-LAST:]):
                parts += parts_of(place, rows)
        others = [part for part in parts if part.conversation != where.id or not part.current]
        return search(others, words, LISTED)

    return await asyncio.to_thread(look)


async def _places(services: PastDeps, where: Conversation, sender: Sender, limit: int) -> list[str]:
    """Return addresses of conversations that may be the sender's, this one first."""
    scopes = [channel_scope(where)]
    if where.private:
        scopes = list(map(person_scope, sorted(await services.access.accounts(sender.key))))
    found = [one for scope in scopes for one in await services.store.recent(scope, limit)]
    return list(dict.fromkeys((where.id, *(one.conversation for one in found))))


async def _may_see(services: Services, here: Conversation, sender: Sender, place: str) -> bool:
    """Return True if the conversation `place` may be shown here to the sender. The last speaker of
    a private conversation is its only one."""
    accounts = await services.access.accounts(sender.key)
    return _is_shown(here, accounts, place, await services.store.newest(place, LAST))


def _is_shown(
    here: Conversation, accounts: frozenset[str], place: str, newest: Sequence[TranscriptRow]
) -> bool:
    """Decide like `_may_see`, by the newest rows of the conversation."""
    there = read_conversation(place)
    if not here.private:
        return not there.private and _channel(here) == _channel(there)
    people = {row.person for row in newest if row.person}
    return there.private and bool(people) and people <= accounts


def _channel(where: Conversation) -> tuple[str, str, str, str]:
    return where.platform, where.account, where.workspace, where.channel


async def bring_back(context: Context, sender: Sender, place: HistoryPart) -> bool:
    """Show the model `place` here from the next commit on. Return False if it may not be shown."""
    here = place.conversation == context.state.conversation.id
    if here:
        context.turns.history.show(
            "resumed", place.shows, await context.turns.history.read(place.shows)
        )
        return True
    store = context.services.store
    if not await _may_see(context.services, context.state.conversation, sender, place.conversation):
        return False
    messages = [
        message
        for start, end in place.shows
        for row in await store.transcript(place.conversation, start, end)
        for message in row.messages
    ]
    context.turns.history.put("resumed", tuple(messages), None)
    return True
