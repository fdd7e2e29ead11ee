"""The link to a supervisor at E2B, carried by the relay's standard streams there.

Data lost by E2B's connections is sent again: pieces are numbered both ways (relay.py). The link
ends with the sandbox, or after `SECONDS_TO_RETURN` without E2B.
"""

import asyncio
import base64
import binascii
import json
from collections.abc import AsyncIterator
from contextlib import suppress

import e2b
from e2b import AsyncCommandHandle
from msgspec import Struct

from agent_core import ambient
from agent_core.sandboxes.e2b.client import (
    BoxGone,
    E2BRefused,
    E2BUnavailable,
    RemoteBox,
    translate_errors,
)
from agent_core.sandboxes.link import Link

SECONDS_TO_RETURN = 60.0
"""Seconds without an answer of E2B after which a link is given up."""
SECONDS_BETWEEN_SIGNS = 60.0
"""Between two signs of life, for the relay and for E2B's own clock."""
MAX_UNACKNOWLEDGED = 1 << 20
"""Received bytes after which the relay gets an acknowledgement."""
MAX_PIECE = 1 << 17
_PAUSES = (0.1, 0.3, 1.0, 2.0, 4.0)
"""Seconds before each new try; the last one counts for all that follow."""
MAX_LINE = 1 << 20


class BoxFacts(Struct, frozen=True, kw_only=True):
    """Facts about the machine, from the relay."""

    home: str = ""
    path: str = ""
    programs: tuple[str, ...] = ()
    node: str = ""


class Wire(asyncio.Transport):
    """The link's transport; `serve` carries it until the link is over."""

    def __init__(self, box: RemoteBox, link: Link, lives: int) -> None:
        super().__init__()
        loop = asyncio.get_running_loop()
        self.facts: asyncio.Future[BoxFacts] = loop.create_future()
        self._box, self._link, self._lives = box, link, lives
        self._unsent = bytearray()
        self._wakes = asyncio.Event()
        self._closing = False
        self._over = asyncio.Event()
        self._ended = asyncio.Event()
        self._line = ""
        self._taken = self._sent = self._unacknowledged = 0
        self._pid = 0
        self._handle: AsyncCommandHandle[None] | None = None

    async def serve(self, command: str) -> None:
        """Start the relay, and carry the data of both sides until one of them is gone. E2BRefused,
        E2BUnavailable, BoxGone if it does not start."""
        async with translate_errors():
            self._handle = await self._box.commands.run(
                command,
                background=True,
                stdin=True,
                timeout=0,
                on_stdout=self._hear,
                retain_output=False,
            )
        self._pid = self._handle.pid
        self._link.connection_made(self)
        try:
            async with asyncio.TaskGroup() as group:
                acts = (self._pour, self._listen, self._sign, self._over.wait)
                tasks: list[asyncio.Task[object]] = [group.create_task(act()) for act in acts]
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                self._closing = True
                for one in tasks:
                    one.cancel()
        finally:
            self._closing = True
            self._ended.set()
            self._link.connection_lost(None)
            if self._handle is not None:
                await self._handle.disconnect()

    async def end_relay(self) -> None:
        """End what runs inside, and wait until it is gone; BoxGone, E2BRefused."""
        if not self._closing and await self._tell(b"Q\n"):
            await self._ended.wait()

    # ---- to the relay ------------------------------------------------------------------------

    async def _pour(self) -> None:
        with suppress(BoxGone, E2BRefused):
            while not self._closing:
                await self._wakes.wait()
                self._wakes.clear()
                while self._unsent:
                    piece = bytes(self._unsent[:MAX_PIECE])
                    del self._unsent[: len(piece)]
                    self._sent += 1
                    line = b"I %d " % self._sent + base64.b64encode(piece) + b"\n"
                    if not await self._tell(line):
                        return
                if self._unacknowledged > MAX_UNACKNOWLEDGED:
                    self._unacknowledged = 0
                    if not await self._tell(b"A %d\n" % self._taken):
                        return

    async def _sign(self) -> None:
        """Send keep-alives."""
        with suppress(BoxGone, E2BRefused):
            while True:
                await ambient.wait(SECONDS_BETWEEN_SIGNS)
                await self._tell(b"A %d\n" % self._taken)
                with suppress(E2BUnavailable):
                    async with translate_errors():
                        await self._box.set_timeout(self._lives)

    async def _tell(self, line: bytes) -> bool:
        """Send a line until it has arrived; one that arrives twice counts once. False: E2B was not
        reached for too long."""
        async for _ in _try_again():
            with suppress(E2BUnavailable):
                async with translate_errors():
                    await self._box.commands.send_stdin(self._pid, line)
                return True
        return False

    # ---- from the relay ----------------------------------------------------------------------

    async def _listen(self) -> None:
        """Listen; where the connection breaks, listen anew."""
        while self._handle is not None and not self._closing:
            # never cancelled itself: the SDK would take that for a broken connection
            waiting = asyncio.ensure_future(self._handle.wait())  # noqa: TID251  # ends with it
            waiting.add_done_callback(lambda one: one.cancelled() or one.exception())
            await asyncio.wait({waiting})
            try:
                async with translate_errors():
                    waiting.result()
                return
            except (BoxGone, E2BRefused, e2b.CommandExitException):
                return
            except (Exception, asyncio.CancelledError):  # noqa: BLE001  # includes "without an end"
                self._handle = await self._return()

    async def _return(self) -> "AsyncCommandHandle[None] | None":
        async for _ in _try_again():
            with suppress(E2BUnavailable):
                try:
                    async with translate_errors():
                        self._line = ""
                        handle = await self._box.commands.connect(
                            self._pid, timeout=0, on_stdout=self._hear, retain_output=False
                        )
                except (BoxGone, E2BRefused):
                    return None
                return handle if await self._tell(b"S %d\n" % self._taken) else None
        return None

    def _hear(self, text: str) -> None:
        *whole, rest = (self._line + text).split("\n")
        self._line = rest if len(rest) <= MAX_LINE else ""
        for line in whole:
            kind, _, said = line.partition(" ")
            number, _, piece = said.partition(" ")
            if kind == "F" and not self.facts.done():
                self._learn(said)
            elif kind == "O" and number.isdecimal() and int(number) == self._taken + 1:
                with suppress(binascii.Error):
                    data = base64.b64decode(piece, validate=True)
                    self._taken += 1
                    self._unacknowledged += len(data)
                    self._link.data_received(data)
        if self._unacknowledged > MAX_UNACKNOWLEDGED:
            self._wakes.set()

    def _learn(self, said: str) -> None:
        with suppress(ValueError, TypeError):
            given = json.loads(said)
            self.facts.set_result(
                BoxFacts(
                    home=str(given["home"]),
                    path=str(given["path"]),
                    programs=tuple(map(str, given["programs"])),
                    node=str(given["node"]),
                )
            )

    # ---- for the link ------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._unsent += data
        self._wakes.set()

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        self._closing = True
        self._over.set()


async def _try_again() -> AsyncIterator[int]:
    """Rounds with pauses in between, for at most SECONDS_TO_RETURN."""
    until, tried = ambient.monotonic() + SECONDS_TO_RETURN, 0
    while ambient.monotonic() < until:
        yield tried
        await ambient.wait(_PAUSES[min(tried, len(_PAUSES) - 1)])
        tried += 1
