"""The store for replicas: Redis 7, every conversation in one hash slot, commits as Lua.

What differs from SQLite: an `accept` is atomic per conversation, not per call; events are known
again per conversation; a lease is good only in the object that took it; done inbox rows, event
ids and old journals go by themselves. It keeps what Redis keeps: with `appendfsync everysec` a
power cut may lose the last second, a failover what was not yet copied; what went missing is seen
by its commit number, and the lease that wrote it writes no more.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import cast

import msgspec
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.exceptions import RedisError

from agent_core import ambient
from gateway.errors import Fenced, StoreFailed
from gateway.messages import Inbound, dedupe_keys
from gateway.store.redis_lease import (
    ACTIVE,
    DEAD,
    Commit,
    Held,
    flush_audit,
    key,
    resolve,
)
from gateway.store.redis_reads import DIRECTORY, KNOWN, Reading, opened
from gateway.store.redis_scripts import (
    ACCEPT,
    ACQUIRE,
    HINTS,
    HOLD,
    LOOK,
    MOVE,
    PUT,
    RESUBMIT,
    run,
)
from gateway.store.redis_wire import Command, Reply, Wire, load
from gateway.store.rows import (
    Accepted,
    Changes,
    Lease,
    Opened,
)

SEQ = "tk:seq"
CHUNK = 100

_encode = msgspec.json.Encoder().encode


class RedisStore(Reading):
    """All store ports over one Redis. Open it with `await RedisStore.open(url)`."""

    def __init__(self, url: str) -> None:
        self._url = url
        retry = Retry(ExponentialBackoff(cap=0.5, base=0.05), 3)
        self._client: Redis = Redis.from_url(url, retry=retry, protocol=2)
        super().__init__(Wire(self._client), Wire(self._client))
        self._held: dict[str, Held] = {}

    @classmethod
    async def open(cls, url: str) -> "RedisStore":
        """The store at `url` (redis://, rediss://, unix://); StoreFailed if it cannot be used."""
        store = cls(url)
        try:
            info = await store._client.info()
            _check(info)
            await load(store._client)
        except (RedisError, OSError) as error:
            await store.close()
            raise StoreFailed(f"cannot open the store: {error}") from error
        except StoreFailed:
            await store.close()
            raise
        return store

    async def close(self) -> None:
        """Finish what is queued and close the connections."""
        await self._writes.close()
        await self._reads.close()
        await self._client.aclose()

    @property
    def trips(self) -> int:
        """Round trips of writes so far (each may hold many commits)."""
        return self._writes.trips

    async def hints(self, on_hint: Callable[[str], None]) -> None:
        """Call `on_hint` with each conversation that gets a row in any process, until cancelled.
        A hint may be lost, e.g. while this connects again: `work` is the truth."""
        client: Redis = Redis.from_url(self._url, socket_timeout=None, protocol=2)
        async with aclosing(client):
            while True:
                try:
                    await _listen(client, on_hint)
                except (RedisError, OSError):
                    await ambient.wait(1.0)

    # ---- inbox ---------------------------------------------------------------------------

    async def take_in(
        self, inbounds: Sequence[Inbound], free: frozenset[str], owner: str, ttl: float
    ) -> tuple[tuple[Accepted, ...], tuple[Opened, ...]]:
        """The lease is taken apart: it lives in another script of the same slot."""
        return await self.accept(inbounds), ()

    async def accept(self, inbounds: Sequence[Inbound]) -> tuple[Accepted, ...]:
        try:
            rows = [(*dedupe_keys(inbound), _encode(inbound)) for inbound in inbounds]
            places = [inbound.conversation.id for inbound in inbounds]
        except (TypeError, ValueError) as error:
            raise StoreFailed(f"cannot be written as JSON: {error}") from error
        groups: dict[str, list[int]] = {}
        for n, name in enumerate(places):
            groups.setdefault(name, []).append(n)
        seqs = [0] * len(rows)
        now = ambient.now()
        highest = 0
        while groups:
            numbers, epochs = await self._prepare(tuple(groups), len(rows), highest)
            commands: list[Command] = []
            for name, members in groups.items():
                parts = (part for n in members for part in (numbers[n], *rows[n]))
                script = run(ACCEPT, key(name), name, now, epochs[name], *parts)
                commands += (*_enlist(name, epochs[name], now), script)
            replies = (await self._writes.call(*commands))[2::3]
            for (name, members), reply in zip(tuple(groups.items()), replies, strict=True):
                match reply:
                    case [b"kept", list(given)]:
                        del groups[name]
                        for n, seq in zip(members, given, strict=True):
                            seqs[n] = int(seq)
                    case [b"again", int(last)]:
                        highest = max(highest, last)
        return tuple(Accepted(seq=seq, fresh=seq > 0) for seq in seqs)

    async def _prepare(
        self, conversations: Sequence[str], count: int, above: int
    ) -> tuple[range, dict[str, int]]:
        """New numbers for inbox rows, and the epochs under which `conversations` are listed.
        `above`: numbers that Redis itself may have forgotten (a failover)."""
        epochs = [("HGET", key(name), "epoch") for name in conversations]
        last, *found = cast("list[int]", await self._writes.call(("INCRBY", SEQ, count), *epochs))
        if last - count < above:
            (last,) = cast(
                "list[int]", await self._writes.call(("INCRBY", SEQ, above + count - last))
            )
        named = zip(conversations, (int(epoch or 0) for epoch in found), strict=True)
        return range(last - count + 1, last + 1), dict(named)

    async def resubmit(self, seq: int) -> str | None:
        names = await self._list("ZRANGE", DEAD, seq, seq, "BYSCORE")
        if not names:
            return None
        where = names[0].decode().split(" ")[0]
        highest = 0
        while True:
            numbers, epochs = await self._prepare((where,), 1, highest)
            script = run(RESUBMIT, key(where), where, seq, numbers[0], epochs[where])
            commands = (*_enlist(where, epochs[where], ambient.now()), script)
            match (await self._writes.call(*commands))[-1]:
                case [b"kept"]:
                    self._writes.tell(("ZREM", DEAD, names[0]))
                    return where
                case [b"none"]:
                    return None
                case [b"again", int(last)]:
                    highest = last

    # ---- leases and commits --------------------------------------------------------------

    async def acquire(self, conversation: str, owner: str, ttl: float) -> Opened | None:
        now, nonce = ambient.now(), ambient.new_id()
        before: tuple[Command, ...] = ()
        epoch = ""
        while True:
            script = run(ACQUIRE, key(conversation), owner, nonce, now, now + ttl, epoch)
            match (await self._writes.call(*before, script))[-1]:
                case [b"unlisted", bytes(current)]:
                    epoch = current.decode()
                    before = _enlist(conversation, int(epoch), now)
                case [b"taken", int(token), head, *rows]:
                    lease = Lease(conversation=conversation, owner=owner, token=token)
                    self._hold(Held(lease=lease, nonce=nonce))
                    *bodies, audit = cast("list[list[bytes]]", rows)
                    self._flush(conversation, audit)
                    return opened(lease, cast("list[bytes]", head), bodies)
                case _:
                    return None

    def _hold(self, held: Held) -> None:
        known = self._held.get(held.lease.conversation)
        if known is None or known.lease.token < held.lease.token:
            self._held[held.lease.conversation] = held

    def _flush(self, conversation: str, audit: Sequence[bytes]) -> None:
        """Lines whose writer ended before it could move them."""
        parts = (body.partition(b" ") for body in audit[1::2])
        pairs = zip(audit[::2], parts, strict=True)
        lines = [(name.decode(), float(at), body) for name, (at, _, body) in pairs]
        if lines:
            self._writes.tell(*flush_audit(conversation, lines))

    def _find(self, lease: Lease) -> Held | None:
        held = self._held.get(lease.conversation)
        return held if held is not None and held.lease.token == lease.token else None

    async def renew(self, leases: Sequence[Lease], ttl: float) -> frozenset[str]:
        until = ambient.now() + ttl
        held = [found for found in map(self._find, leases) if found is not None]
        replies = await self._writes.call(*(_hold(one, until) for one in held))
        names = (one.lease.conversation for one in held)
        return frozenset(name for name, still in zip(names, replies, strict=True) if still)

    async def give_back(self, lease: Lease) -> None:
        held = self._find(lease)
        if held is not None:
            await self._writes.call(_hold(held, ""))
            self._drop(held)

    def _drop(self, held: Held) -> None:
        if self._held.get(held.lease.conversation) is held:
            del self._held[held.lease.conversation]

    def release(self, lease: Lease, seen: int, changes: Changes) -> asyncio.Future[bool]:
        return self._submit(lease, changes, seen)

    def submit(self, lease: Lease, changes: Changes) -> asyncio.Future[None]:
        return cast("asyncio.Future[None]", self._submit(lease, changes, None))

    def _submit(self, lease: Lease, changes: Changes, seen: int | None) -> asyncio.Future[bool]:
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        held = self._find(lease)
        if held is None:
            future.set_exception(Fenced(f"{lease.conversation} is not held under this token"))
            return future

        def done(outcome: str, error: Exception | None) -> None:
            if outcome == "released":
                self._drop(held)
            if commit.after:
                self._writes.tell(*commit.after)
            resolve(future, outcome, error)

        commit = Commit(held, changes, seen, done)
        self._writes.put(commit)
        return future

    async def work(self, owner: str) -> tuple[str, ...]:
        now = ambient.now()
        names = [name.decode() for name in await self._list("ZRANGE", ACTIVE, 0, -1)]
        found: list[tuple[int, str]] = []
        for start in range(0, len(names), CHUNK):
            some = names[start : start + CHUNK]
            replies = await self._writes.call(*(run(LOOK, key(name), owner, now) for name in some))
            for name, reply in zip(some, replies, strict=True):
                match reply:
                    case [1, int(last)]:
                        found.append((last, name))
                    case [-1, int(epoch)]:
                        self._writes.tell(run(MOVE, ACTIVE, name, epoch, ""))
        return tuple(name for _, name in sorted(found))

    # ---- other keys ----------------------------------------------------------------------

    async def call(self, *commands: Command) -> list[Reply]:
        """The replies of `commands`, which must be harmless when they are sent twice."""
        return await self._writes.call(*commands)

    # ---- directory -----------------------------------------------------------------------

    async def put(self, key: str, body: bytes | None, expected: bytes | None = None) -> bool:
        keep = ("0", b"") if body is None else ("1", body)
        compare = () if expected is None else (expected,)
        script = run(PUT, DIRECTORY, ambient.new_id(), key, *keep, *compare)
        (written,) = await self._writes.call(script)
        return written == 1

    async def sweep(self, now: float) -> int:
        """Nothing is left to do: event ids and journals of ended turns go by themselves."""
        return 0


def _check(info: dict[str, object]) -> None:
    version = str(info.get("redis_version", "0"))
    if int(version.split(".")[0]) < 7:
        raise StoreFailed(f"Redis 7.0 or newer is needed, this is {version}")
    policy = info.get("maxmemory_policy")
    if policy != "noeviction":
        raise StoreFailed(
            f"Redis may drop keys to make room (maxmemory-policy {policy}): set it to noeviction"
        )


async def _listen(client: Redis, on_hint: Callable[[str], None]) -> None:
    """Read the channel until the connection breaks; a ping without an answer breaks it too."""
    async with client.pubsub(ignore_subscribe_messages=True) as channel:
        await channel.subscribe(HINTS)
        quiet = 0
        while quiet < 2:
            message = await channel.get_message(timeout=15.0)
            if message is None:
                quiet += 1
                await channel.ping()
                continue
            quiet = 0
            if message["type"] == "message":
                on_hint(message["data"].decode())


def _enlist(conversation: str, epoch: int, now: float) -> tuple[Command, Command]:
    """What must stand before a conversation may have work: see `redis_scripts`."""
    return (
        ("ZADD", ACTIVE, "GT", epoch, conversation),
        ("ZADD", KNOWN, "GT", now, conversation),
    )


def _hold(held: Held, until: float | str) -> Command:
    return run(HOLD, key(held.lease.conversation), held.lease.token, held.nonce, until)
