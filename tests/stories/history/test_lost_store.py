"""A Redis that is emptied while people wait, as by a copy that is promoted and had nothing: they
are told what will not be answered, and what they write next is."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.contracts.redis_server import RedisServer, redis_server
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
