"""Brings an earlier conversation back: finds it among those that may be shown where it is asked
for, and goes on from it. A group is shown only what was said in it, a person in private only what
the same person's accounts said in private."""

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gateway.history.parts import Found, Part, parts_of, search
from gateway.messages import Conversation, Sender, read_conversation
from gateway.store.rows import Place

if TYPE_CHECKING:
    from gateway.sessions.services import Services
    from gateway.sessions.session import Session

MOST_ROWS = 2_000
"""The newest transcript rows of a conversation that are looked through."""
MOST_PLACES = 200
"""The newest conversations that are looked through for each of a person's accounts."""
LAST = 20
"""Rows by which it is seen whose a private conversation is."""
LISTED = 5


async def find(session: "Session", sender: Sender, words: str) -> list[Found]:
    """The best parts for `words`; the list that /resume and a number refers to."""
    found = await look_for(session.services, session.conversation, sender, words)
    places = tuple(
        Place(conversation=one.part.conversation, title=one.part.title, shows=one.part.shows)
        for one in found
    )
    session.row = replace(session.row, found=places)
    return found


async def look_for(
    services: "Services", where: Conversation, sender: Sender, words: str
) -> list[Found]:
    """The best parts for `words` that may be shown to the sender at `where`, the newest without
    words."""
    parts: list[Part] = []
    for place in await _places(services, where, sender):
        if place == where.id or await _may_see(services, where, sender, place):
            parts += parts_of(place, await services.store.newest(place, MOST_ROWS))
    others = [part for part in parts if part.conversation != where.id or not part.current]
    return await asyncio.to_thread(search, others, words, LISTED)


async def _places(services: "Services", where: Conversation, sender: Sender) -> list[str]:
    """Addresses of conversations that may be the sender's, this one first."""
    store = services.store
    if not where.private:
        channel = replace(where, thread="", person="").id
        found = [one.conversation for one in await store.conversations(channel, MOST_PLACES)]
    else:
        accounts = await services.access.accounts(sender.key)
        found = []
        for platform in sorted({account.partition(":")[0] for account in accounts}):
            known = await store.conversations(f"{platform}:", MOST_PLACES)
            found += [one.conversation for one in known]
    return list(dict.fromkeys((where.id, *found)))


async def _may_see(services: "Services", here: Conversation, sender: Sender, place: str) -> bool:
    """Whether what was said at `place` may be shown here to the sender: who spoke there last is
    who speaks there, since nobody else is in a private conversation."""
    there = read_conversation(place)
    if not here.private:
        return not there.private and _channel(here) == _channel(there)
    if not there.private:
        return False
    newest = await services.store.newest(place, LAST)
    people = {row.person for row in newest if row.person}
    return bool(people) and people <= await services.access.accounts(sender.key)


def _channel(where: Conversation) -> tuple[str, str, str, str]:
    return where.platform, where.account, where.workspace, where.channel


async def bring_back(session: "Session", sender: Sender, place: Place) -> bool:
    """From the next commit on the model sees `place` here. False if it may not be shown."""
    here = place.conversation == session.conversation.id
    if here:
        session.history.show("resumed", place.shows, await session.history.read(place.shows))
        return True
    store = session.services.store
    if not await _may_see(session.services, session.conversation, sender, place.conversation):
        return False
    messages = [
        message
        for start, end in place.shows
        for row in await store.transcript(place.conversation, start, end)
        for message in row.messages
    ]
    session.history.put("resumed", tuple(messages), None)
    return True
