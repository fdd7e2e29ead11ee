"""The event loop: uvloop's, but for how it starts child processes.

uvloop forks, which copies the page tables of the whole gateway while everything waits: 8 ms in a
process of 150 MB, 42 in one of 700, against 1 for `subprocess.Popen`, which shares them until the
child has its program (vfork).
"""

import asyncio
import os
import subprocess
import threading
from asyncio.base_subprocess import BaseSubprocessTransport
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import uvloop

P = TypeVar("P", bound=asyncio.BaseProtocol)


class EventLoop(uvloop.Loop):
    """Also runs children whose process it did not fork."""

    async def subprocess_exec(
        self,
        protocol_factory: Callable[[], P],
        *args: Any,
        stdin: Any = subprocess.PIPE,
        stdout: Any = subprocess.PIPE,
        stderr: Any = subprocess.PIPE,
        **kwargs: Any,
    ) -> tuple[Any, P]:
        """Start a program, as asyncio's loops do. `kwargs`: as `subprocess.Popen` takes them."""
        protocol, connected = protocol_factory(), self.create_future()
        assert isinstance(protocol, asyncio.SubprocessProtocol)
        files = (stdin, stdout, stderr, 0)
        child = ChildTransport(self, protocol, args, False, *files, waiter=connected, **kwargs)
        try:
            await connected
        except BaseException:
            child.close()
            await child.wait()
            raise
        return child, protocol


class ChildTransport(BaseSubprocessTransport):
    """A child process whose end the loop is told by a file of the kernel's, or by a thread where
    there is none (before Linux 5.3)."""

    _loop: asyncio.AbstractEventLoop
    _proc: "subprocess.Popen[bytes]"

    async def wait(self) -> int:
        """Wait until it has ended, and return its exit code. Others may still have its output
        open, which asyncio's own waits for in Python 3.11."""
        return await asyncio.shield(self._ended)

    async def _wait(self) -> int:
        return await self.wait()

    def _start(self, *args: Any, **kwargs: Any) -> None:
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._proc = subprocess.Popen(*args, **kwargs)
        try:
            file = os.pidfd_open(self._proc.pid)
        except (AttributeError, OSError):
            threading.Thread(target=self._await_end, args=(self._loop,), daemon=True).start()
        else:
            self._loop.add_reader(file, self._see_end, file)

    def _see_end(self, file: int) -> None:
        self._loop.remove_reader(file)
        os.close(file)
        self._note_end(self._proc.wait())

    def _await_end(self, loop: asyncio.AbstractEventLoop) -> None:
        code = self._proc.wait()
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._note_end, code)

    def _note_end(self, code: int) -> None:
        self._process_exited(code)
        self._ended.set_result(code)
