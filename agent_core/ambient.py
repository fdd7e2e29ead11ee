"""The clock, randomness and new ids: the only module that touches them.

Tests put a manual clock in place with `use`; nothing else in the product reads time.
"""

import asyncio
import secrets
import time
from datetime import UTC, datetime
from typing import Protocol

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Clock(Protocol):
    """Wall-clock and monotonic seconds, and waiting for them."""

    def now(self) -> float: ...
    def monotonic(self) -> float: ...
    async def wait(self, seconds: float) -> None: ...


_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_OF_FILES = 5
"""Linux's CLOCK_REALTIME_COARSE, which Python has no name for."""
MAX_STEPS = 20
"""Milliseconds to wait for its next step at most."""
MAX_HELD = 0.01
"""Seconds for which long work may hold the event loop."""


class SystemClock:
    """The machine's clock. Durations count the time that the machine slept: leases run out in
    it."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.clock_gettime(_SINCE_BOOT)

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


_clock: Clock = SystemClock()


def use(clock: Clock) -> None:
    """Put `clock` in place of the machine's (tests)."""
    global _clock
    _clock = clock


def now() -> float:
    """Seconds since 1970, UTC."""
    return _clock.now()


def monotonic() -> float:
    """Seconds that never go back, for durations."""
    return _clock.monotonic()


def utc(seconds: float) -> datetime:
    """`seconds` since 1970 as an aware datetime in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


def read_file_clock() -> int:
    """Read the kernel's clock for file times, nanoseconds since 1970; it steps every 4 or 10 ms."""
    return time.clock_gettime_ns(_OF_FILES)


async def part_file_times() -> float:
    """Wait until the clock of file times has passed this moment; return the moment, seconds since
    1970.

    Files written before have times up to it, files written after have later ones: the kernel stamps
    files by a clock that steps.
    """
    moment = time.time()
    for _ in range(MAX_STEPS):
        if time.clock_gettime(_OF_FILES) > moment:
            break
        await asyncio.sleep(0.001)
    return moment


async def wait(seconds: float) -> None:
    """Wait until `seconds` have passed on the clock."""
    await _clock.wait(max(0.0, seconds))


class LoopShare:
    """The share of the event loop that long work on it may take."""

    def __init__(self) -> None:
        self._begin()

    async def offer(self) -> None:
        """Serve others if the work has held the loop for MAX_HELD; call it between its pieces."""
        if self._others_ran:  # the work waited for something meanwhile
            self._begin()
        elif time.perf_counter() - self._began >= MAX_HELD:
            await asyncio.sleep(0)
            self._begin()

    def _begin(self) -> None:
        self._began, self._others_ran = time.perf_counter(), False
        asyncio.get_running_loop().call_soon(self._note_turn)

    def _note_turn(self) -> None:
        self._others_ran = True


def limit(seconds: float | None) -> asyncio.Timeout:
    """`async with limit(…)` raises TimeoutError in the body after `seconds`; None: no limit."""
    return asyncio.timeout(seconds)


def secret_id() -> str:
    """128 random bits as 22 characters, for ids that must not be guessed."""
    return _base62(secrets.randbits(128), 22)


def new_id() -> str:
    """A sortable id: milliseconds and 64 random bits, 19 characters."""
    return _base62(int(now() * 1000), 8) + _base62(secrets.randbits(64), 11)


def token(length: int) -> str:
    """Return `length` random characters, without those that people mix up."""
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
    return "".join(secrets.choice(letters) for _ in range(length))


def pick(count: int) -> int:
    """A random number from 0 to `count` - 1."""
    return secrets.randbelow(count)


def _base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, rest = divmod(number, 62)
        digits.append(ALPHABET[rest])
    return "".join(reversed(digits))
