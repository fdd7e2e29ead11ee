"""What a network and a failover do to the Redis store: each call ends in time, each server that is
no master any more is left."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest
from redis.asyncio import Redis

from gateway.errors import StoreFailed
from gateway.store import redis_presence, redis_wire
from gateway.store.redis import RedisStore
from gateway.store.redis_presence import Presence
from gateway.store.rows import AcquiredConversation, Changes
from tests.contracts.redis_server import (
    RedisServer,
    all_is_copied,
    demote,
    follow,
    promote,
    redis_pair,
    redis_server,
)
from tests.contracts.store_values import keys_of, outcome, place, record, said, take
from tests.fakes.tcp_proxy import TcpProxy
from tests.fakes.waiting import PATIENCE

C1 = place().id


@asynccontextmanager
async def reached(where: Path | tuple[str, int]) -> AsyncIterator[tuple[TcpProxy, RedisStore]]:
    async with TcpProxy(where) as proxy:
        store = await RedisStore.open(proxy.url)
        try:
            yield proxy, store
        finally:
            proxy.heal()
            await store.close()


@asynccontextmanager
async def through(server: RedisServer) -> AsyncIterator[tuple[TcpProxy, RedisStore]]:
    async with Redis.from_url(server.url) as client:
        await client.flushall()
    async with reached(server.socket) as found:
        yield found


async def test_no_call_takes_longer_than_its_bound(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply may take longer than all attempts together: only the bound ends the call."""
    monkeypatch.setattr(redis_wire, "MAX_SECONDS", 0.5)
    monkeypatch.setattr(redis_wire, "PATIENCE", 60.0)
    loop = asyncio.get_running_loop()
    async with through(server) as (proxy, store):
        lease = await take(store)
        proxy.stall()
        began = loop.time()
        calls = (
            store.renew([lease], 30),
            store.submit(lease, Changes(records=(record(0),))),
            store.turn("t1"),
            store.now(),
        )
        ends = await asyncio.gather(*map(outcome, calls))
        assert ends == [StoreFailed] * 4
        assert loop.time() - began < PATIENCE


async def test_a_short_cut_is_not_noticed(server: RedisServer) -> None:
    async with through(server) as (proxy, store):
        lease = await take(store)
        proxy.cut(refuse=False)
        assert await store.renew([lease], 30) == {C1}
        proxy.cut(refuse=False)
        assert await outcome(store.submit(lease, Changes(records=(record(0),)))) is True
        proxy.cut()
        asyncio.get_running_loop().call_later(0.2, proxy.heal)
        assert (await store.accept([said(1)]))[0].fresh
        assert keys_of(await store.records("t1")) == ["k0"]


async def test_replies_that_are_lost_do_nothing_twice(server: RedisServer) -> None:
    async with through(server) as (proxy, store):
        lease = await take(store)
        proxy.lose_replies()
        asyncio.get_running_loop().call_later(1.0, proxy.lose_replies, False)
        assert await outcome(store.submit(lease, Changes(records=(record(0),)))) is True
        assert proxy.lost > 0
        assert keys_of(await store.records("t1")) == ["k0"]


async def test_a_renewal_waits_for_no_write(server: RedisServer) -> None:
    """The connection of the writes hangs; leases are renewed over their own."""
    async with through(server) as (proxy, store):
        lease = await take(store)
        held = asyncio.Event()

        async def hang(commands: object) -> list[object]:
            await held.wait()
            return []

        store._writes._pipe = hang  # type: ignore[method-assign,assignment]
        stuck = store.submit(lease, Changes(records=(record(0),)))
        async with asyncio.timeout(1.0):
            assert await store.renew([lease], 30) == {C1}
        assert not stuck.done()
        held.set()
        assert await outcome(stuck) is StoreFailed


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[RedisServer, RedisServer]]:
    """A master and its copy, both reached over TCP."""
    with redis_pair(tmp_path) as found:
        yield found


async def test_a_demoted_master_is_left(pair: tuple[RedisServer, RedisServer]) -> None:
    """It lives on and refuses; the name means the other one by now."""
    old, new = pair
    await follow(old, new)
    async with reached(("127.0.0.1", old.port)) as (proxy, store):
        lease = await take(store)
        await store.submit(lease, Changes(records=(record(0),)))
        await all_is_copied(old)
        await promote(new)
        proxy.retarget(("127.0.0.1", new.port))
        await demote(old, new)
        assert await outcome(store.submit(lease, Changes(records=(record(1),)))) is True
        assert await store.renew([lease], 30) == {C1}
        assert (await store.accept([said(1)]))[0].fresh
        assert keys_of(await store.records("t1")) == ["k0", "k1"]
        async with Redis.from_url(new.url) as client:
            assert await client.hlen(f"tk:{{{C1}}}:r:t1") == 2
            ours = [one for one in await client.client_list() if one["cmd"] == "echo"]
            assert len(ours) == 3, "renewals have moved too"


async def test_what_a_promoted_copy_never_had_is_seen(
    pair: tuple[RedisServer, RedisServer],
) -> None:
    """Commits and an acquire were lost: the old lease writes no more, a new one does at once."""
    old, new = pair
    await follow(old, new)
    async with reached(("127.0.0.1", old.port)) as (proxy, store):
        lease = await take(store)
        await store.submit(lease, Changes(records=(record(0),)))
        await all_is_copied(old)
        await promote(new)  # it copies no more
        async with Redis.from_url(new.url) as client:
            await store.submit(lease, Changes(records=(record(1),)))
            later = await take(store)
            proxy.retarget(("127.0.0.1", new.port))
            await demote(old, new)
            assert await store.renew([later], 30) == frozenset()
            assert store.losses == 1
            again = await take(store)
            assert again.token == later.token
            assert await outcome(store.submit(again, Changes(records=(record(1),)))) is True
            assert await client.hlen(f"tk:{{{C1}}}:r:t1") == 2


@dataclass(frozen=True)
class Restart:
    """Who was there when the server ended, how, and who takes the conversation then."""

    taker: str
    stopped: bool
    beside: bool
    lost: bool
    given_back: bool

    @property
    def doubtful(self) -> bool:
        """One that lived on alone knows what it sent, and one whose lease is whole knows too."""
        if self.taker == "itself":
            return self.beside and self.lost
        return not self.stopped or (self.beside and self.taker == "its next life")


RESTARTS = [
    Restart(taker, stopped, beside, lost, given_back)
    for taker, stopped in (("itself", False), *product(("its next life", "another"), (False, True)))
    for beside, lost in product({taker == "another", True}, (False, True))
    for given_back in {taker == "itself", False}
]


@pytest.mark.parametrize("case", RESTARTS, ids=str)
async def test_what_may_be_forgotten_is_in_doubt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Restart
) -> None:
    """The server starts again: what waited there is in doubt for all that cannot know better, until
    the conversation is released."""
    monkeypatch.setattr(redis_presence, "TTL", 100)
    server = redis_server(tmp_path, "--appendfsync", "always")
    async with AsyncExitStack() as stack:
        stack.callback(server.end)
        one, claim = await enter(server, "one", stack)
        two = (await enter(server, "two", stack))[0] if case.beside else one
        (row,) = await one.accept([said(1)])
        owner = "two" if case.taker == "another" else "one"
        lease = await take(one, owner="one", ttl=30.0 if owner == "one" else 0.2)
        log = next((tmp_path / "appendonlydir").glob("*.incr.aof"))
        length = log.stat().st_size
        await one.submit(lease, Changes(records=(record(0),)))
        if case.stopped:
            await claim.give_up()
            length = log.stat().st_size
        (newest,) = await one.accept([said(2)])
        server.kill()
        if case.lost:
            os.truncate(log, length)
        server.start()
        if case.taker == "its next life":
            one, _ = await enter(server, "one", stack)
        taker = two if case.taker == "another" else one
        if case.given_back:
            await taker.give_back(lease)
        opened = await until_taken(taker, owner)
        known = row if case.lost else newest
        assert opened.doubt == (known.seq if case.doubtful else 0)
        (later,) = await taker.accept([said(3)])
        assert later.seq > (newest.seq if case.taker == "itself" else known.seq)
        assert await taker.release(opened.lease, later.seq, Changes()) is True
        again = await taker.acquire(C1, "one", 30.0)
        assert again is not None and again.doubt == 0


@pytest.mark.parametrize("given_back", [True, False], ids=["given back", "run out"])
async def test_a_lease_that_another_may_have_had_since_shows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given_back: bool
) -> None:
    """What the other did with it is forgotten, and all that the first one did is there."""
    monkeypatch.setattr(redis_presence, "TTL", 100)
    server = redis_server(tmp_path, "--appendfsync", "always")
    async with AsyncExitStack() as stack:
        stack.callback(server.end)
        one, _ = await enter(server, "one", stack)
        two, _ = await enter(server, "two", stack)
        (row,) = await one.accept([said(1)])
        lease = await take(one, owner="one", ttl=30.0 if given_back else 0.2)
        await one.submit(lease, Changes(records=(record(0),)))
        if given_back:
            await one.give_back(lease)
        log = next((tmp_path / "appendonlydir").glob("*.incr.aof"))
        length = log.stat().st_size
        other = await until_taken(two, "two")
        await two.submit(other.lease, Changes(records=(record(1),)))
        server.kill()
        os.truncate(log, length)
        server.start()
        assert (await until_taken(one, "one")).doubt == row.seq


async def enter(
    server: RedisServer, name: str, stack: AsyncExitStack
) -> tuple[RedisStore, Presence]:
    """A gateway's store, and its name."""
    store = await RedisStore.open(server.url)
    stack.push_async_callback(store.close)
    claim = store.presence(name)
    assert await claim.claim()
    await store.put("works", b"yes")
    return store, claim


async def until_taken(store: RedisStore, owner: str) -> AcquiredConversation:
    """The conversation, once the lease before has run out."""
    async with asyncio.timeout(PATIENCE):
        while (opened := await store.acquire(C1, owner, 30.0)) is None:
            await asyncio.sleep(0.05)
    return opened
