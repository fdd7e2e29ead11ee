"""A copy of the store is promoted that lacks what was answered meanwhile: the answer comes again, and
says so."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest

from tests.contracts.redis_server import (
    RedisServer,
    all_is_copied,
    demote,
    follow,
    promote,
    redis_pair,
    redis_server,
)
from tests.fakes.model_server import Call, Say
from tests.fakes.tcp_proxy import TcpProxy
from tests.stories.rig import PERSON, Rig, write

TWICE = "Possibly sent twice"
LOOK = Call("list_files", "{}")
SECONDS = 90.0
"""A lease has to run out meanwhile."""


class Gate(asyncio.Event):
    """Lets the first requests through."""

    def __init__(self, rig: Rig, free: int) -> None:
        super().__init__()
        self._rig, self._free = rig, free

    async def wait(self) -> Literal[True]:
        return len(self._rig.model.requests) <= self._free or await super().wait()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[RedisServer, RedisServer]]:
    with redis_pair(tmp_path) as found:
        yield found


@asynccontextmanager
async def forgotten_answer(
    rig: Rig, old: RedisServer, new: RedisServer, before: tuple[Call, ...]
) -> AsyncIterator[TcpProxy]:
    """An answer is sent of which the promoted copy `new` knows nothing; the gateway's proxy."""
    await follow(old, new)
    rig.model.script(*before, Say("the answer"), *before, Say("the answer"), Say("another"))
    async with TcpProxy(("127.0.0.1", old.port)) as proxy:
        await rig.start(REDIS_URL=proxy.url)
        rig.model.gate = Gate(rig, len(before))
        rig.telegram.say(PERSON, "hello")
        await rig.model.wait(lambda: rig.model.inflight and len(rig.model.requests) > len(before))
        await all_is_copied(old)
        await promote(new)
        rig.model.gate.set()
        await rig.shows("the answer")
        await rig.quiet()
        yield proxy


async def check_labels(rig: Rig) -> None:
    """The second copy says that it may be one; nothing that comes after it does."""
    await rig.telegram.wait_text(PERSON, TWICE, SECONDS)
    await rig.quiet()
    assert [TWICE in text for text in rig.said() if "the answer" in text] == [False, True]
    rig.telegram.say(PERSON, "and now?")
    await rig.shows("another")
    await rig.quiet()
    assert TWICE not in rig.said()[-1]


@pytest.mark.parametrize("before", [(), (LOOK,)], ids=["nothing", "a call"])
async def test_what_is_sent_again_is_labelled(
    rig: Rig, pair: tuple[RedisServer, RedisServer], before: tuple[Call, ...]
) -> None:
    """`before`: what the copy still has of the turn besides its message."""
    old, new = pair
    async with forgotten_answer(rig, old, new, before) as proxy:
        proxy.retarget(("127.0.0.1", new.port))
        await demote(old, new)
        await check_labels(rig)


@pytest.mark.parametrize("before", [(), (LOOK,)], ids=["nothing", "a call"])
async def test_who_did_not_send_it_labels_it_too(
    rig: Rig, pair: tuple[RedisServer, RedisServer], before: tuple[Call, ...]
) -> None:
    """The gateway that sent it has ended as well, and nobody knows."""
    old, new = pair
    async with forgotten_answer(rig, old, new, before) as proxy:
        await end(rig, proxy)
        proxy.retarget(("127.0.0.1", new.port))
        proxy.heal()
        await rig.start(REDIS_URL=proxy.url)
        await check_labels(rig)


async def test_what_waits_for_people_is_not_in_doubt(
    rig: Rig, pair: tuple[RedisServer, RedisServer]
) -> None:
    """Who presses after the loss has not been answered before."""
    old, new = pair
    await follow(old, new)
    rig.model.script(write("a.txt"), Say("it is written"))
    async with TcpProxy(("127.0.0.1", old.port)) as proxy:
        await rig.start(REDIS_URL=proxy.url)
        rig.telegram.say(PERSON, "write it")
        card = await rig.card()
        await rig.quiet()
        await all_is_copied(old)
        await promote(new)
        await end(rig, proxy)
        proxy.retarget(("127.0.0.1", new.port))
        proxy.heal()
        await rig.start(REDIS_URL=proxy.url)
        rig.press(card, "Approve")
        await rig.shows("it is written")
        await rig.quiet()
        assert TWICE not in "".join(rig.said())


async def test_a_number_that_is_assigned_again_is_another_message(rig: Rig, tmp_path: Path) -> None:
    """A server loses the end of its log: what was answered there comes no more, what people write
    next has not been answered."""
    server = redis_server(tmp_path, "--appendfsync", "always")
    try:
        rig.model.script(Say("the first"), Say("the second"), Say("the third"))
        await rig.start(REDIS_URL=server.url)
        rig.telegram.say(PERSON, "one")
        await rig.shows("the first")
        await rig.quiet()
        log = next((tmp_path / "appendonlydir").glob("*.incr.aof"))
        length = log.stat().st_size
        rig.telegram.say(PERSON, "two")
        await rig.shows("the second")
        await rig.quiet()
        server.kill()
        os.truncate(log, length)
        server.start()
        rig.telegram.say(PERSON, "three")
        await rig.shows("the third")
        await rig.quiet()
        assert TWICE not in "".join(rig.said())
    finally:
        server.end()


async def end(rig: Rig, proxy: TcpProxy) -> None:
    """It ends at once, and can tell nobody."""
    proxy.cut()
    await rig.crash()
