"""One child process: its output bounded, its whole group killed when it is over."""

import asyncio
import codecs
import os
import signal
from collections.abc import Callable
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT
from typing import cast

from msgspec import Struct

from agent_core import ambient
from agent_core.sandboxes.port import Done

HALF = 500_000
"""Bytes that are kept of the output's beginning, and of its end."""
LIVE = 200_000
"""Characters that people see while it runs."""
FLOOD = 64_000_000
"""Bytes of output after which the process is stopped."""
DRAIN = 1.0
"""Seconds to wait for output that is still under way when the process has ended."""


class Start(Struct, frozen=True, kw_only=True):
    """What to start. `env` is all of its environment."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: Path


class _Output:
    """What a process writes: a head, a tail, and a count of the rest."""

    def __init__(self, live: Callable[[str], None]) -> None:
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()
        self._live = live
        self._left = LIVE
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, data: bytes) -> None:
        """Keep what fits, show what fits."""
        self.total += len(data)
        space = HALF - len(self._head)
        self._head += data[:space]
        self._tail += data[max(0, space) :]
        if len(self._tail) > 2 * HALF:
            del self._tail[:-HALF]
        if self._left > 0:
            text = self._decoder.decode(data)[: self._left]
            self._left -= len(text)
            self._live(text if self._left else f"{text}\n[more is not shown while it runs]\n")

    def text(self) -> str:
        """All, or its beginning and end with the count of what is missing."""
        tail = bytes(self._tail[-HALF:])
        missing = self.total - len(self._head) - len(tail)
        if not missing:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        head, end = (part.decode("utf-8", "replace") for part in (bytes(self._head), tail))
        why = "; stopped, it wrote too much" if self.total > FLOOD else ""
        return f"{head}\n[…]\n{end}\n[{missing:,} bytes in the middle were left out{why}]"


class _Child(asyncio.SubprocessProtocol):
    """Follows the process itself, not its pipes: a grandchild may hold those open for ever."""

    def __init__(self, output: _Output) -> None:
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.drained: asyncio.Future[None] = loop.create_future()
        self._output = output
        self._group: int | None = None  # never 0, which is the gateway's own group

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._group = cast(asyncio.SubprocessTransport, transport).get_pid()

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        if isinstance(data, bytes):
            self._output.add(data)
        if self._output.total > FLOOD:
            self.kill()

    def process_exited(self) -> None:
        self.kill()
        if not self.exited.done():
            self.exited.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.drained.done():
            self.drained.set_result(None)

    def kill(self) -> None:
        """SIGKILL to the process and to all that it started in its group."""
        if self._group is None:
            return
        try:
            os.killpg(self._group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass


async def run(start: Start, limit: float, live: Callable[[str], None]) -> Done:
    """Run to the end, to `limit` seconds or to cancellation; then its group is dead."""
    output = _Output(live)
    loop = asyncio.get_running_loop()
    transport, child = await loop.subprocess_exec(
        lambda: _Child(output),
        *start.argv,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        env=start.env,
        cwd=start.cwd,
        start_new_session=True,
    )
    timed_out = False
    try:
        try:
            async with ambient.limit(limit):
                await asyncio.shield(child.exited)
        except TimeoutError:
            timed_out = True
            child.kill()
        try:
            async with ambient.limit(DRAIN):
                await asyncio.shield(child.exited)
                await asyncio.shield(child.drained)
        except TimeoutError:
            pass
        code = transport.get_returncode()
    finally:
        child.kill()
        transport.close()
    return Done(exit_code=_code(code), output=output.text(), timed_out=timed_out)


def _code(code: int | None) -> int:
    if code is None:
        return 128 + signal.SIGKILL
    return code if code >= 0 else 128 - code
