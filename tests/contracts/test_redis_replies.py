"""Replies that are not those of the requests, as a faulty proxy mixes them up: none is believed,
none ends a process, and each call ends."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from redis.asyncio import Redis

from gateway.errors import StoreFailed
from gateway.store import redis as redis_store
from gateway.store import redis_presence, redis_scripts, redis_wire
from gateway.store.redis import RedisStore
from gateway.store.rows import Changes, Lease
from gateway.store.spending.expenses import Expense
from tests.contracts.redis_server import RedisServer
from tests.contracts.store_values import letter, outcome, place, record, said, take, turn
from tests.fakes.redis_proxy import Mix, RedisProxy, Words
from tests.fakes.waiting import PATIENCE

GREETS = {b"SELECT", b"CLIENT", b"HELLO", b"AUTH"}
MOST = 2_000
"""Replies that all calls together may ask for while nothing is right."""


def replace_by(reply: bytes) -> Mix:
    def mix(words: Words, told: bytes, before: list[bytes]) -> bytes:
        return told if words[0].upper() in GREETS else reply

    return mix


def shift(words: Words, told: bytes, before: list[bytes]) -> bytes:
    """Each request gets the reply of the one before."""
    return before[-1] if before else told


def skip(words: Words, told: bytes, before: list[bytes]) -> bytes:
    """Each request gets the first reply that there was."""
    return before[0] if before else told


def double(words: Words, told: bytes, before: list[bytes]) -> bytes:
    return told + told


MIXES: dict[str, Mix] = {
    "shift": shift, "skip": skip, "double": double, "nothing": replace_by(b"$-1\r\n"),
    "zero": replace_by(b":0\r\n"), "one": replace_by(b":1\r\n"), "minus": replace_by(b":-1\r\n"),
    "most": replace_by(b":9223372036854775807\r\n"), "empty": replace_by(b"*0\r\n"),
    "ok": replace_by(b"+OK\r\n"), "bytes": replace_by(b"$3\r\n\x00\xff\xfe\r\n"),
    "a list of it": replace_by(b"*2\r\n$4\r\nkept\r\n*1\r\n:7\r\n"),
    "again": replace_by(b"*2\r\n$5\r\nagain\r\n:7\r\n"),
    "unlisted": replace_by(b"*2\r\n$8\r\nunlisted\r\n$1\r\n7\r\n"),
    "no protocol": replace_by(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "cut": replace_by(b"$9\r\nab"),
}  # fmt: skip
CALLS: dict[str, Callable[[RedisStore, Lease], Awaitable[object]]] = {
    "accept": lambda store, lease: store.accept([said(2, "c2"), said(3, "c3")]),
    "acquire": lambda store, lease: store.acquire(place("c4").id, "me", 30),
    "submit": lambda store, lease: store.submit(lease, Changes(records=(record(0),))),
    "renew": lambda store, lease: store.renew([lease], 30),
    "work": lambda store, lease: store.work("me"),
    "put": lambda store, lease: store.put("a", b"b"),
    "get": lambda store, lease: store.get("a"),
    "due": lambda store, lease: store.due(1.0, 10),
    "next due": lambda store, lease: store.next_due(1.0),
    "now": lambda store, lease: store.now(),
    "spend": lambda store, lease: store.spend("d", [Expense(account="x", amount=1, limit=9)]),
    "letters": lambda store, lease: store.letters(10),
    "keep a letter": lambda store, lease: store.keep_letter(letter("turn", "t9")),
    "resubmit": lambda store, lease: store.resubmit("t9"),
    "records": lambda store, lease: store.records("t1"),
    "latest": lambda store, lease: store.latest(place().id, 10),
}


@pytest.fixture(autouse=True)
async def emptied(server: RedisServer) -> None:
    async with Redis.from_url(server.url) as client:
        await client.flushall()


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_wire, "PAUSES", (0.01, 0.02, 0.03))
    monkeypatch.setattr(redis_wire, "PATIENCE", 0.2)
    monkeypatch.setattr(redis_presence, "EVERY", 0.05)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("name", MIXES)
async def test_replies_of_other_requests_are_not_believed(server: RedisServer, name: str) -> None:
    async with RedisProxy(server.socket) as proxy:
        store = await RedisStore.open(proxy.url)
        presence = store.presence("me")
        assert await presence.claim()
        await store.accept([said(1)])
        lease = await take(store)
        await store.submit(lease, Changes(turns=(turn(),)))
        holding = asyncio.create_task(presence.hold())
        proxy.mix = MIXES[name]
        async with asyncio.timeout(PATIENCE):
            found = {what: await outcome(call(store, lease)) for what, call in CALLS.items()}
            proxy_saw = proxy.mixed
        proxy.mix = None
        assert set(found.values()) == {StoreFailed}, found
        assert not holding.done() and proxy_saw < MOST
        await judge_whole(store)
        assert not holding.done()
        holding.cancel()
        await store.close()


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("name", MIXES)
async def test_a_start_among_such_replies_ends_with_a_reason(
    server: RedisServer, name: str
) -> None:
    async with RedisProxy(server.socket) as proxy:
        proxy.mix = MIXES[name]
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(StoreFailed):
                await RedisStore.open(proxy.url)


async def judge_whole(store: RedisStore) -> None:
    """The store works as if nothing had been, and has lost nothing."""
    assert all(row.fresh for row in await store.accept([said(4), said(5, "c2")]))
    assert (await store.acquire(place("c2").id, "me", 30)) is not None
    await store.submit(await take(store), Changes(records=(record(1),)))
    assert (await store.records("t1"))[-1] == record(1).record and store.losses == 0


@pytest.mark.parametrize(
    "reply",
    [b":%d" % one for one in (-(2**63), -1, 0, 2**53, 2**63 - 1)]
    + [b"$-1", b"$1\r\n7", b"*0", b"+OK"],
    ids=repr,
)
async def test_a_number_that_no_row_can_have_is_refused(server: RedisServer, reply: bytes) -> None:
    def renumber(words: Words, told: bytes, before: list[bytes]) -> bytes:
        return reply + b"\r\n" if words[0].upper() == b"INCRBY" else told

    async with RedisProxy(server.socket) as proxy:
        store = await RedisStore.open(proxy.url)
        await store.accept([said(1)])
        proxy.mix = renumber
        assert await outcome(store.accept([said(2)])) is StoreFailed
        proxy.mix = None
        (row,) = await store.accept([said(2)])
        assert row.fresh and row.seq < 10 and store.losses == 0
        await store.close()


@pytest.mark.parametrize("echo", [b"-NOPERM no echo", b"-ERR unknown command 'ECHO'"], ids=str)
async def test_a_server_that_repeats_nothing_is_believed(server: RedisServer, echo: bytes) -> None:
    def refuse(words: Words, told: bytes, before: list[bytes]) -> bytes:
        return echo + b"\r\n" if words[0].upper() == b"ECHO" else told

    async with RedisProxy(server.socket) as proxy:
        proxy.mix = refuse
        store = await RedisStore.open(proxy.url)
        await store.accept([said(1)])
        await store.submit(await take(store), Changes(turns=(turn(),), records=(record(0),)))
        assert len(await store.records("t1")) == 1
        await store.close()


HINTS_SENT = (
    b"\xff\xfe", b"", b"\x00", b"no address", b"a:b:c", "ü:::::".encode("latin-1"), b"x" * 1_000_000,
    b"%ff:%ff:%ff:%ff:%ff", b"telegram:1:::\n",
)  # fmt: skip
PUBLISHED = (
    b"*1\r\n:7\r\n", b"*0\r\n", b"$-1\r\n", b":0\r\n", b"+OK\r\n", b"-ERR no\r\n", b"HTTP/1.1 400\r\n\r\n",
    b"*3\r\n$7\r\nmessage\r\n:1\r\n:2\r\n", b"*3\r\n$9\r\nsubscribe\r\n$-1\r\n$-1\r\n",
    b"*2\r\n$7\r\nmessage\r\n$1\r\nx\r\n", b"*3\r\n*0\r\n*0\r\n*0\r\n",
)  # fmt: skip


class Listener:
    """Listens to hints while a test goes on."""

    def __init__(self, store: RedisStore) -> None:
        self.heard: list[str] = []
        self._connected = asyncio.Event()
        self.task = asyncio.create_task(store.hints(self.heard.append, self._connected.set))

    async def hear(self, client: Redis, hint: str) -> None:
        """Until `hint` is heard, sent again and again: none is sure to come."""
        async with asyncio.timeout(PATIENCE):
            while hint not in self.heard:
                assert not self.task.done(), self.task.exception()
                await client.publish(redis_scripts.HINTS, hint)
                await asyncio.sleep(0.01)


async def test_whatever_is_published_the_next_hint_is_heard(server: RedisServer) -> None:
    store = await RedisStore.open(server.url)
    listener = Listener(store)
    async with Redis.from_url(server.url) as client:
        await listener.hear(client, "first")
        for number, hint in enumerate(HINTS_SENT):
            await client.publish(redis_scripts.HINTS, hint)
            await listener.hear(client, f"good {number}")
    listener.task.cancel()
    await store.close()


@pytest.mark.parametrize("odd", PUBLISHED, ids=repr)
async def test_replies_that_are_no_hints_end_nothing(
    server: RedisServer, odd: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_store, "DEAF_SECONDS", 0.05)
    async with RedisProxy(server.socket) as proxy:
        store = await RedisStore.open(proxy.url)
        proxy.published = odd
        listener = Listener(store)
        async with Redis.from_url(server.url) as client:
            for _ in range(20):
                await client.publish(redis_scripts.HINTS, "lost")
                await asyncio.sleep(0.01)
            proxy.published = b""
            await listener.hear(client, "heard")
        listener.task.cancel()
        await store.close()
