"""A copy of the store is promoted that lacks what was answered meanwhile: the answer comes again, and
says so."""

import asyncio
from collections.abc import Iterator
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
)
from tests.fakes.model_server import Call, Say
from tests.fakes.tcp_proxy import TcpProxy
from tests.stories.rig import PERSON, Rig

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


@pytest.mark.parametrize("before", [(), (LOOK,)], ids=["nothing", "a call"])
async def test_what_is_sent_again_is_labelled(
    rig: Rig, pair: tuple[RedisServer, RedisServer], before: tuple[Call, ...]
) -> None:
    """`before`: what the copy still has of the turn besides its message."""
    old, new = pair
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
        proxy.retarget(("127.0.0.1", new.port))
        await demote(old, new)
        await rig.telegram.wait_text(PERSON, TWICE, SECONDS)
        await rig.quiet()
        assert [TWICE in text for text in rig.said() if "the answer" in text] == [False, True]
        rig.telegram.say(PERSON, "and now?")
        await rig.shows("another")
        await rig.quiet()
        assert TWICE not in rig.said()[-1]
