"""One child process: its output bounded, its whole group killed when it is over."""

import asyncio
import codecs
import os
import signal
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Protocol, cast

from msgspec import Struct

from agent_core import ambient
from agent_core.sandboxes.port import ProcessResult

HALF = 500_000
"""Bytes that are kept of the output's beginning, and of its end."""
HALF_BEHIND = 50_000
"""The same of a command that nobody waits for."""
LIVE = 200_000
"""Characters that people see while it runs."""
FLOOD = 64_000_000
"""Bytes of output after which the process is stopped."""
DRAIN = 1.0
"""Seconds to wait for output that is still under way when the process has ended."""


class ProcessSpec(Struct, frozen=True, kw_only=True):
    """What to start. `env` is all of its environment. Its standard input stays open as long as
    this process lives: it has to end itself when that closes."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: Path


class Sink(Protocol):
    """Takes what a process writes."""

    @property
    def total(self) -> int:
        """Bytes so far; beyond FLOOD the process is stopped."""

    def add(self, data: bytes) -> None:
        """More of it."""

    def text(self) -> str:
        """What was kept of it."""

    def end(self) -> None:
        """The process is dead; a little may still come."""


class OutputBuffer:
    """What a process writes: a head, a tail, and a count of the rest. `half`: bytes of each."""

    def __init__(self, half: int, live: Callable[[str], None] | None = None) -> None:
        self.total = 0
        self._half = half
        self._head = bytearray()
        self._tail = bytearray()
        self._live = live
        self._left = LIVE
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, data: bytes) -> None:
        """Keep what fits, show what fits."""
        self.total += len(data)
        space = self._half - len(self._head)
        self._head += data[:space]
        self._tail += data[max(0, space) :]
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]
        if self._live and self._left > 0:
            text = self._decoder.decode(data)[: self._left]
            self._left -= len(text)
            self._live(text if self._left else f"{text}\n[more is not shown while it runs]\n")

    def show(self, live: Callable[[str], None]) -> None:
        """What comes from now on is shown to `live` too."""
        self._live = live

    def end(self) -> None:
        """Nothing depends on it."""

    def text(self) -> str:
        """All, or its beginning and end with the count of what is missing."""
        tail = bytes(self._tail[-self._half :])
        missing = self.total - len(self._head) - len(tail)
        if not missing:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        head, end = (part.decode("utf-8", "replace") for part in (bytes(self._head), tail))
        why = "; stopped, it wrote too much" if self.total > FLOOD else ""
        return f"{head}\n[…]\n{end}\n[{missing:,} bytes in the middle were left out{why}]"


class Child(asyncio.SubprocessProtocol):
    """A process under way. Follows the process itself, not its pipes: a grandchild may hold
    those open for ever. Needs no task: its end is a callback, its limit a timer."""

    def __init__(self, output: Sink, limit: float) -> None:
        loop = asyncio.get_running_loop()
        self.timed_out = False
        self._limit = limit
        self._exited: asyncio.Future[None] = loop.create_future()
        self._drained: asyncio.Future[None] = loop.create_future()
        self._output = output
        self._transport: asyncio.SubprocessTransport | None = None
        self._group: int | None = None  # never 0, which is the gateway's own group
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self._group = self._transport.get_pid()
        self._after(self._limit, self._expire)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        if isinstance(data, bytes):
            self._output.add(data)
        if self._output.total > FLOOD:
            self.kill()

    def process_exited(self) -> None:
        self.kill()
        if self._transport is not None and (held := self._transport.get_pipe_transport(0)):
            held.close()
        _settle(self._exited)
        self._output.end()
        self._after(DRAIN, self.close)

    def connection_lost(self, exc: Exception | None) -> None:
        _settle(self._drained)

    @property
    def done(self) -> ProcessResult | None:
        """How it ended, None while it runs."""
        return self.read_end() if self._exited.done() else None

    def read_end(self) -> ProcessResult:
        """What there is to say of it now; a process that cannot even be killed counts as dead."""
        code = self._transport.get_returncode() if self._transport is not None else None
        return ProcessResult(exit_code=_code(code), output=self.output(), timed_out=self.timed_out)

    def output(self) -> str:
        """What it wrote so far."""
        return self._output.text()

    async def wait(self, seconds: float) -> ProcessResult | None:
        """Wait at most `seconds` for its end, and for what it wrote last."""
        try:
            async with ambient.limit(seconds):
                await asyncio.shield(self._exited)
        except TimeoutError:
            return None
        try:
            async with ambient.limit(DRAIN):
                await asyncio.shield(self._drained)
        except TimeoutError:
            pass
        return self.read_end()

    def kill(self) -> None:
        """SIGKILL to the process and to all that it started in its group."""
        if self._group is None or self._exited.done():
            return  # the number may be another process's by now
        try:
            os.killpg(self._group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass

    def close(self) -> None:
        """Its end, and nothing kept open."""
        if self._timer is not None:
            self._timer.cancel()
        self.kill()
        if self._transport is not None:
            self._transport.close()

    async def end(self) -> None:
        """Close it, and see it gone: an event loop that is closed over a dying one fails."""
        self.close()
        if self._transport is not None and not self._exited.done():
            await self.wait(DRAIN)

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, act)

    def _expire(self) -> None:
        self.timed_out = True
        self.kill()


async def begin(
    start: ProcessSpec, limit: float, live: Callable[[str], None] | None = None
) -> Child:
    """Start it; it runs to its end or to `limit` seconds, then its group is dead."""
    return await attach(start, limit, OutputBuffer(HALF if live else HALF_BEHIND, live))


async def attach(start: ProcessSpec, limit: float, sink: Sink, *inherited: int) -> Child:
    """As `begin`, with a sink of its own, and with these open files besides."""
    child = Child(sink, limit)
    starting = asyncio.ensure_future(  # noqa: TID251  # half-way it could not be seen to its end
        asyncio.get_running_loop().subprocess_exec(
            lambda: child,
            *start.argv,
            stdin=PIPE,
            stdout=PIPE,
            stderr=STDOUT,
            env=start.env,
            cwd=start.cwd,
            start_new_session=True,
            pass_fds=inherited,
        )
    )
    try:
        await asyncio.shield(starting)
    except BaseException:
        await asyncio.wait([starting])
        await child.end()
        raise
    return child


async def run(start: ProcessSpec, limit: float, live: Callable[[str], None]) -> ProcessResult:
    """Run to the end, to `limit` seconds or to cancellation; then its group is dead."""
    child = await begin(start, limit, live)
    try:
        return await child.wait(limit + DRAIN) or child.read_end()
    finally:
        await child.end()


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _code(code: int | None) -> int:
    if code is None:
        return 128 + signal.SIGKILL
    return code if code >= 0 else 128 - code
