"""Faults put between a gateway and one of its ports, for as long as a test wants them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

from agent_core import ambient
from gateway.errors import Rejected, StoreFailed, Unreadable, Unstorable

Kind = Literal[
    "raises_once", "raises", "refuses", "hangs", "acts_then_hangs", "acts_then_fails", "garbage",
    "full",
]  # fmt: skip
KINDS: tuple[Kind, ...] = (
    "raises_once", "raises", "refuses", "hangs", "acts_then_hangs", "acts_then_fails", "garbage",
    "full",
)  # fmt: skip


HOUR = 3_600.0


class Boom(Exception):
    """What nobody expects."""


class Fault:
    """One kind of failure of one method, between `begin` and `end`; only calls that `hits`."""

    def __init__(self, kind: Kind, refusal: Callable[[], Exception]) -> None:
        self.kind, self.count = kind, 0
        self._refusal = refusal
        self._active = False
        self._over = asyncio.Event()

    def begin(self) -> None:
        self._active = True

    def end(self) -> None:
        self._active = False
        self._over.set()

    @property
    def _strikes(self) -> bool:
        return self._active and not (self.kind == "raises_once" and self.count)

    def wrap(
        self, real: Callable[..., Awaitable[object]], hits: Callable[..., bool]
    ) -> Callable[..., Awaitable[object]]:
        async def call(*args: object, **named: object) -> object:
            if not self._strikes or not hits(*args):
                return await real(*args, **named)
            self.count += 1
            match self.kind:
                case "raises_once" | "raises":
                    raise Boom("out of the blue")
                case "refuses":
                    raise self._refusal()
                case "full":
                    raise StoreFailed("database or disk is full")
                case "garbage":
                    return object()
                case "hangs":
                    await self._over.wait()
                    return await real(*args, **named)
            value = await real(*args, **named)
            if self.kind == "acts_then_fails":
                raise Boom("after it acted")
            await self._over.wait()
            return value

        return call

    def wrap_queued(
        self, real: Callable[..., "asyncio.Future[object]"], hits: Callable[..., bool]
    ) -> Callable[..., "asyncio.Future[object]"]:
        """As `wrap`, for commits: queued at once, in order, and after a failed one none of the
        same lease passes."""
        last: dict[object, asyncio.Future[object]] = {}

        def call(*args: object) -> "asyncio.Future[object]":
            lease = args[0]
            before = last.get(lease)
            strikes = self._strikes and hits(*args)
            if before is None and not strikes:
                return real(*args)

            async def queued() -> object:
                if before is not None:
                    await asyncio.wait([before])
                    if before.exception() is not None:
                        raise StoreFailed("an earlier commit of this lease failed")
                if not strikes:
                    return await real(*args)

                async def act() -> object:
                    return await real(*args)

                return await self.wrap(act, lambda: True)()

            last[lease] = asyncio.ensure_future(queued())
            return last[lease]

        return call

    def wrap_pure(
        self, real: Callable[..., object], hits: Callable[..., bool]
    ) -> Callable[..., object]:
        """As `wrap`, for a plain function: what would hang raises."""

        def call(*args: object, **named: object) -> object:
            if not self._strikes or not hits(*args):
                return real(*args, **named)
            self.count += 1
            if self.kind == "garbage":
                return object()
            raise Boom("out of the blue")

        return call


class Jump:
    """The machine's clock is set forward or back by an hour, or the machine sleeps for one, once;
    in place of a Fault."""

    def __init__(self, kind: str) -> None:
        self.kind, self._real = kind, ambient.SystemClock()
        self._ahead = self._slept = 0.0
        ambient.use(self)

    def begin(self) -> None:
        self._ahead = {"ahead": HOUR, "back": -HOUR}.get(self.kind, 0.0)
        self._slept = HOUR if self.kind == "slept" else 0.0

    def end(self) -> None:
        """It stays as it is."""

    def now(self) -> float:
        return self._real.now() + self._ahead + self._slept

    def monotonic(self) -> float:
        return self._real.monotonic() + self._slept

    async def wait(self, seconds: float) -> None:
        await self._real.wait(seconds)


def refusal_of(port: str) -> Callable[[], Exception]:
    """What the port says of something that it will never take."""
    if port.startswith("adapter"):
        return lambda: Rejected("never")
    if port in ("store.records", "store.outbox", "store.transcript", "store.find", "store.turn"):
        return lambda: Unreadable("a row of the future")
    if port.startswith("store"):
        return lambda: Unstorable("never")
    return lambda: Boom("never")
