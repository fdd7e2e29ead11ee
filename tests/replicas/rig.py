"""Several replicas in one process: a host and a store each, with a network and a clock of their
own, one platform and one Redis. Written down is who began what, and when it had renewed."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import TypeVar

from agent_core import ambient
from agent_core.ambient import SystemClock
from gateway.errors import StoreFailed
from gateway.messages import Inbound
from gateway.store.redis import RedisStore
from gateway.store.rows import AcceptedRow, AcquiredConversation, Changes, Lease
from gateway.views import Abilities
from tests.fakes.tcp_proxy import TcpProxy
from tests.fakes.world import ROOM, Ledger, Life

T = TypeVar("T")

TTL = 3.0
ENOUGH = 100.0
"""Seconds that anything may take on a machine that is busy with other things for half of them."""
EFFECTS = ("model", "tool", "send", "edit")

_ahead: ContextVar[float] = ContextVar("ahead", default=0.0)


class SkewedClocks(SystemClock):
    """Each replica's wall clock goes wrong by its own amount; durations are the same for all.
    `looked`: when anybody last looked at it. Later than that the process did not run, or what it
    did was decided then: a machine that is busy makes nothing late."""

    looked = 0.0

    def now(self) -> float:
        return super().now() + _ahead.get()

    def monotonic(self) -> float:
        SkewedClocks.looked = super().monotonic()
        return SkewedClocks.looked


class Witness:
    """What all replicas did, in the order in which it happened."""

    def __init__(self) -> None:
        self.late: list[str] = []
        """Effects begun by who had not renewed in time."""
        self.stale: list[str] = []
        """Commits that stood though a newer lease was known before they were made."""
        self.token = 0


class Marked(Ledger):
    """Says who did it, and whether it still might."""

    def __init__(self, path: Path, replica: "Replica") -> None:
        super().__init__(path)
        self._replica = replica

    def note(self, what: str, **fields: object) -> None:
        one = self._replica
        left = one.renewed + TTL * 2 / 3 - SkewedClocks.looked
        if what in EFFECTS and left < 0:
            one.witness.late.append(f"{one.name}: {what} {-left:.2f} s late {fields}")
        super().note(what, replica=one.name, left=round(left, 3), **fields)


class WatchedStore:
    """A replica's store: what it held, and when it had renewed that."""

    def __init__(self, store: object, replica: "Replica") -> None:
        self._store, self._replica = store, replica

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def _took(self, opened: AcquiredConversation | None) -> AcquiredConversation | None:
        if opened is not None and opened.lease.conversation == ROOM.id:
            self._replica.renewed = opened.began
            self._replica.witness.token = opened.lease.token
        return opened

    async def take_in(
        self, inbounds: Sequence[Inbound], free: frozenset[str], owner: str, ttl: float
    ) -> tuple[tuple[AcceptedRow, ...], tuple[AcquiredConversation, ...]]:
        accepted, taken = await self._store.take_in(inbounds, free, owner, ttl)  # type: ignore[attr-defined]
        for opened in taken:
            self._took(opened)
        return accepted, taken

    async def acquire(
        self, conversation: str, owner: str, ttl: float
    ) -> AcquiredConversation | None:
        return self._took(await self._store.acquire(conversation, owner, ttl))  # type: ignore[attr-defined]

    async def renew(self, leases: Sequence[Lease], ttl: float) -> frozenset[str]:
        if self._replica.mute:
            raise StoreFailed("no renewal gets through")
        began = ambient.monotonic()
        held = await self._store.renew(leases, ttl)  # type: ignore[attr-defined]
        if ROOM.id in held:
            self._replica.renewed = began
        return frozenset(held)

    def submit(self, lease: Lease, changes: Changes) -> "asyncio.Future[None]":
        return self._judged(lease, self._store.submit(lease, changes))  # type: ignore[attr-defined]

    def release(self, lease: Lease, seen: int, changes: Changes) -> "asyncio.Future[bool]":
        return self._judged(lease, self._store.release(lease, seen, changes))  # type: ignore[attr-defined]

    def _judged(self, lease: Lease, future: "asyncio.Future[T]") -> "asyncio.Future[T]":
        """A newer lease was known before this was asked for: it must not stand."""
        witness, known = self._replica.witness, self._replica.witness.token
        if lease.conversation == ROOM.id and known > lease.token:
            future.add_done_callback(
                lambda done: (
                    None
                    if done.cancelled() or done.exception()
                    else witness.stale.append(f"{self._replica.name}: {lease.token} < {known}")
                )
            )
        return future


async def _open(url: str) -> RedisStore:
    """A busy machine may take longer than the little time that these tests leave a trip."""
    while True:
        try:
            return await RedisStore.open(url)
        except StoreFailed:
            await asyncio.sleep(0.1)


class Replica:
    """One host behind a network of its own."""

    def __init__(self, name: str, folder: Path, proxy: TcpProxy, witness: Witness, ahead: float):
        self.name, self.proxy, self.witness = name, proxy, witness
        self.renewed = 0.0
        self.mute = False
        """Its renewals fail, while all else gets through."""
        self._ahead = ahead
        life = self.life = Life(folder, lambda _: _open(proxy.url))
        life.owner, life.ttl = name, TTL
        life.adapter.count = 1_000_000 * int(name)  # native ids are not another's
        life.adapter.abilities = Abilities(edit_interval=0.02)
        life.agent.delays = {"model": 0.05, "growing": 0.1, "note": 0.1}
        life.ledger = Marked(folder / "ledger.jsonl", self)
        life.agent._ledger = life.adapter._ledger = life.ledger

    async def say(self, event: str, text: str) -> None:
        """Something came in here."""
        context = copy_context()
        context.run(_ahead.set, self._ahead)
        await asyncio.create_task(self.life.say(event, text), context=context)

    @asynccontextmanager
    async def running(self):
        token = _ahead.set(self._ahead)
        async with AsyncExitStack() as stack:
            life = self.life
            await stack.enter_async_context(life.living(self._prepare))
            store = life.store._store
            assert isinstance(store, RedisStore)
            self.store = store
            hints = asyncio.create_task(store.hints(life.host.wake))
            _ahead.reset(token)
            try:
                yield self
            finally:
                hints.cancel()
                await asyncio.wait({hints})

    def _prepare(self) -> None:
        self.life.equip(store=WatchedStore(self.life.store, self))


class Fleet:
    """Replicas over one Redis, and what people say to any of them."""

    def __init__(self, folder: Path, target: Path | tuple[str, int]) -> None:
        self._folder, self._target = folder, target
        self.witness = Witness()
        self.replicas: list[Replica] = []
        self.accepted: list[str] = []
        """Texts that were acknowledged."""
        self.on_their_way: set[str] = set()
        """Texts that were sent, and not acknowledged yet."""

    @asynccontextmanager
    async def running(self, aheads: Sequence[float]):
        async with AsyncExitStack() as stack:
            for n, ahead in enumerate(aheads):
                proxy = await stack.enter_async_context(TcpProxy(self._target))
                replica = Replica(str(n + 1), self._folder, proxy, self.witness, ahead)
                self.replicas.append(await stack.enter_async_context(replica.running()))
            try:
                yield self
            finally:
                self.heal()

    def heal(self) -> None:
        """The network is well again."""
        for replica in self.replicas:
            replica.proxy.heal()

    async def say(self, text: str, first: int = 0) -> None:
        """As a platform does: what one did not acknowledge is delivered again, to another."""
        turn = first
        self.on_their_way.add(text)
        while True:
            replica = self.replicas[turn % len(self.replicas)]
            turn += 1
            try:
                async with asyncio.timeout(TTL):
                    await replica.say(text, text)
                break
            except (StoreFailed, TimeoutError):
                await asyncio.sleep(0.02)
        self.accepted.append(text)
        self.on_their_way.discard(text)

    def lines(self, what: str) -> list[dict]:
        return self.replicas[0].life.ledger.all(what)

    async def until(self, met: Callable[[], object]) -> None:
        """Wait for what any of them does."""
        async with asyncio.timeout(ENOUGH):
            while not met():
                await asyncio.sleep(0.02)

    async def quiet(self) -> None:
        """Until nobody holds anything and nothing waits."""
        async with asyncio.timeout(ENOUGH):
            while True:
                idle = not any(one.life.host.sessions for one in self.replicas)
                if idle and not await self.replicas[0].store.work("nobody"):
                    return
                await asyncio.sleep(0.05)
