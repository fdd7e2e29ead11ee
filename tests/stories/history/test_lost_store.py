"""A Redis that is emptied while people wait, as by a copy that is promoted and had nothing: they
are told what will not be answered, and what they write next is."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from msgspec.structs import replace

from gateway.access.access import Access
from gateway.conversation.outage import ForgottenWork, Outage, Unfinished
from gateway.store.rows import AcquiredConversation, ConversationRow, InboxRow, Lease
from gateway.store.sqlite import SqliteStore
from tests.contracts.redis_server import RedisServer, redis_server
from tests.contracts.store_values import said, turn, view
from tests.fakes.model_server import Say
from tests.stories.rig import FRIEND, PERSON, Rig, write

LOST = "has lost its newest entries"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    made = redis_server(tmp_path)
    yield made
    made.end()


def empty(server: RedisServer) -> None:
    with redis.Redis(unix_socket_path=str(server.socket)) as client:
        client.flushall()


async def test_who_waits_for_an_answer_is_told(rig: Rig, server: RedisServer) -> None:
    rig.model.gate = asyncio.Event()
    rig.model.script(Say("never seen"), Say("hello again"))
    await rig.start(REDIS_URL=server.url)
    rig.telegram.say(PERSON, "hello")
    await rig.model.wait_inflight()
    empty(server)
    rig.model.gate.set()
    await rig.shows(LOST)
    await rig.quiet()
    assert [LOST in text for text in rig.said()].count(True) == 1
    rig.telegram.say(PERSON, "hello once more")
    await rig.shows("hello again")
    await rig.quiet()
    assert rig.said(FRIEND) == [] and len(rig.model.requests) == 2


async def test_who_is_asked_is_told_at_the_press(rig: Rig, server: RedisServer) -> None:
    rig.model.script(write("a.txt"), Say("hello again"))
    await rig.start(REDIS_URL=server.url)
    rig.telegram.say(PERSON, "write it")
    card = await rig.card()
    await rig.quiet()
    empty(server)
    told = await rig.told(rig.press(card, "Approve"))
    assert told.startswith("I do not recognise this button")
    rig.telegram.say(PERSON, "hello once more")
    await rig.shows("hello again")
    assert not (rig.workspace() / "a.txt").exists()


@pytest.mark.parametrize("told", [True, False], ids=["forgotten", "done elsewhere"])
async def test_only_a_lease_that_is_no_newer_tells_of_a_loss(told: bool, tmp_path: Path) -> None:
    """Tokens grow: a replica that had the conversation meanwhile has ended its work."""
    store, spawned = await SqliteStore.open(tmp_path / "store.db"), list[object]()
    where = Rig.where()
    first = await store.acquire(where.id, "me", 30)
    assert first is not None
    await store.give_back(first.lease)
    newer = await store.acquire(where.id, "me", 30)
    assert newer is not None
    outage = Outage({}, Access({}, {}), lambda work, name: spawned.append(name))
    before = Unfinished(where=where, language="en", token=first.lease.token, waits=True)
    outage.tell_loss(before, first if told else newer)
    assert bool(spawned) == told
    await store.close()


COVERED = {"begun": True, "later": False, "parked": False, "row-4": True, "row-6": False}
COVERED |= {"asked-q": False, "unsent": True}


@pytest.mark.parametrize("waited", [False, True], ids=["", "a row waited"])
@pytest.mark.parametrize("doubt", [0, 5])
def test_what_a_forgotten_holder_may_have_done(doubt: int, waited: bool) -> None:
    """What waits for people has not been answered, unless an answer waits."""
    turns = (turn("begun"), replace(turn("later"), inbox=(6,)), turn("parked", "parked"))
    opened = AcquiredConversation(
        lease=Lease(conversation=Rig.where().id, owner="me", token=1, nonce="n"),
        row=ConversationRow(),
        last=6,
        inbox=tuple(InboxRow(seq=n, at=0.0, inbound=said(n)) for n in ((4, 6) if waited else (6,))),
        turns=turns,
        views=(replace(view("reply", 1, sent=False), turn="unsent"),),
        questions=(),
        crashed=True,
        began=0.0,
        doubt=doubt,
    )
    work, known = ForgottenWork(opened), {one.id: one for one in turns}
    covered = {name: work.covers(name, known.get(name)) for name in COVERED}
    with_rows = COVERED | {"parked": True, "asked-q": True}
    wanted = with_rows if waited else COVERED
    assert covered == (wanted if doubt else dict.fromkeys(COVERED, False))
