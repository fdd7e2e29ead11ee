"""Limits on the HTTP server's connections: how many, and for how long.

aiohttp waits for a request's head and body, and for a client that reads, as long as the client
likes: a few hundred clients that send half a line would take all file descriptors. Here each
connection has a time limit for all three, and when too many are open the oldest one without a
request is closed.
"""

import asyncio
import contextlib
import fcntl
import math
import re
import resource
import sys
import termios
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import cast

from aiohttp import StreamReader, web
from aiohttp.web_protocol import RequestHandler

from agent_core import ambient

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
HEAD_SECONDS = 10.0
"""Time limit of a request's head, from the connection or its first byte on."""
IDLE_SECONDS = 75.0
"""Between two requests; a proxy in front keeps connections for a minute."""
BODY_SECONDS, BODY_RATE = 20.0, 16_000
"""Time limit of a request's body: so many seconds, plus one for each so many announced bytes. So
many seconds without a byte end it too, as aiohttp does not tell a handler of a body that it cannot
parse."""
MAX_ANNOUNCED = 32 << 20
STALLED_SECONDS = 60.0
"""Time limit of a client that takes nothing of what waits for it."""
MAX_UNREAD, LAST_SECONDS = 128 << 10, 1.0
"""Bytes of an unread body that are discarded after the answer to keep the connection usable. A
longer one is not read, and the connection is closed after so many seconds, in which the answer can
arrive."""
MAX_IDLE = 64 << 10
"""Bytes received while no request begins and no body grows. Data that is not HTTP is parsed again
with everything that follows it, some milliseconds each time."""
MAX_HEAD = 16 << 10
"""Maximum bytes of a first head, which is buffered until it is complete."""
_HEAD_BEGUN = re.compile(rb"[\r\n]*[A-Za-z]{0,20}(?: |\Z)")
_HEAD_END = re.compile(rb"\n\r?\n")
MAX_CONNECTIONS = 2_000
REFUSALS_EACH_SECOND, REFUSAL_BURST, MAX_REFUSAL_WAIT = 250.0, 50, 8.0
"""Refusals a second beyond a burst, for all clients together. Others wait, and are closed if the
wait is too long; a client that retries at once could otherwise use up the processor."""


class ConnectionLimits:
    """The connections of one server, `most` at once; `most_each` of one address. Without the
    second, an address may hold half of all, for a proxy of many people is one; this machine all."""

    def __init__(self, most: int = 0, most_each: int = 0) -> None:
        self._most = most or _room()
        self._most_each = most_each
        self._open: dict[_WatchedConnection, None] = {}
        """Connections by the time of their last activity, oldest first."""
        self._known: dict[RequestHandler, _WatchedConnection] = {}
        """Connections that sent a complete head."""
        self._counts: Counter[str] = Counter()
        self._refusals = RefusalPace()

    def protocol(self, make: Callable[[], RequestHandler]) -> asyncio.Protocol:
        """Make the protocol of a new connection. aiohttp's own is made with the first complete
        head, as it costs a task and a parser."""
        return _WatchedConnection(self, make)

    def enter(self, connection: "_WatchedConnection") -> bool:
        """Register a new connection. Return False if it must be closed."""
        most_each = self._most_each or (self._most if connection.local else self._most // 2)
        if len(self._open) >= self._most:
            room = self._make_room("")
        elif self._counts[connection.address] >= most_each:
            room = self._make_room(connection.address)
        else:
            room = True
        if room:
            self._open[connection] = None
            self._counts[connection.address] += 1
        return room

    def know(self, connection: "_WatchedConnection", inner: RequestHandler) -> None:
        """The connection has a request."""
        self._known[inner] = connection

    def leave(self, connection: "_WatchedConnection") -> None:
        """Unregister a closed connection."""
        if connection not in self._open:
            return
        del self._open[connection]
        if connection.inner is not None:
            self._known.pop(connection.inner, None)
        self._counts[connection.address] -= 1
        if not self._counts[connection.address]:
            del self._counts[connection.address]

    def close(self) -> None:
        """Close the connections without a request, which nobody else knows."""
        for connection in [one for one in self._open if one.inner is None]:
            connection.abort()

    def touch(self, connection: "_WatchedConnection") -> None:
        """The connection came to rest now."""
        if connection in self._open:
            del self._open[connection]
            self._open[connection] = None

    def _make_room(self, address: str) -> bool:
        """Close the connection that has waited longest, of `address` if given."""
        waiting = (
            connection
            for connection in self._open
            if not connection.busy and (not address or connection.address == address)
        )
        oldest = next(waiting, None)
        if oldest is not None:
            oldest.abort()
        return oldest is not None

    @web.middleware
    async def watch(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The middleware: notes that the connection has a request, and limits its body's time."""
        connection = self._known.get(request.protocol)
        if connection is None:
            return await handler(request)
        announced = min(request.content_length or MAX_ANNOUNCED, MAX_ANNOUNCED)
        seconds = BODY_SECONDS + announced / BODY_RATE
        body = None
        if request.can_read_body:
            body = _BodyWatch(request, connection, seconds)
        connection.begin(request.content if body is not None else None)
        refused = False
        try:
            response = await handler(request)
            refused = response.status >= 400
            return response
        except Exception:
            refused = True
            raise
        finally:
            if body is not None:
                body.end()
            connection.rest()
            unwanted = _count_unread(request) > MAX_UNREAD
            if unwanted:
                connection.refuse_rest()
            if refused and not await self._refusals.wait():
                connection.abort()
            if unwanted:
                connection.close_soon()


class RefusalPace:
    """Spreads refusals over time."""

    def __init__(self) -> None:
        self._next = -math.inf

    async def wait(self) -> bool:
        """Wait for the next slot; return False at once if the wait would be too long."""
        now = ambient.monotonic()
        begin = max(self._next, now - REFUSAL_BURST / REFUSALS_EACH_SECOND)
        if begin - now > MAX_REFUSAL_WAIT:
            return False
        self._next = begin + 1 / REFUSALS_EACH_SECOND
        if begin > now:
            await ambient.wait(begin - now)
        return True


class _WatchedConnection(asyncio.Protocol):
    """One connection: passes everything on to aiohttp's protocol and enforces the time limits."""

    def __init__(self, limits: ConnectionLimits, make: Callable[[], RequestHandler]) -> None:
        self.loop = asyncio.get_running_loop()
        self.inner: RequestHandler | None = None
        self._make, self._head = make, bytearray()
        self.busy = 0
        self.since = self.loop.time()
        self.address = ""
        self.local = False
        self._limits = limits
        self._limit = HEAD_SECONDS
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._refuses = self._holds = False
        self._content: StreamReader | None = None
        self._seen = self._idle = 0
        self._unread = 0
        self._stall: asyncio.TimerHandle | None = None
        """Set while more waits for the client than is buffered for it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if isinstance(peer, tuple) and peer else ""
        self.local = self.address in ("", "::1") or self.address.startswith("127.")
        if not self._limits.enter(self):
            self._transport.abort()
            return
        self._timer = self.loop.call_later(self._limit, self._check)

    def _take_head(self, data: bytes) -> bytes:
        """Return all buffered data once a first head is complete or invalid; b"" before."""
        self._head += data
        at = max(0, len(self._head) - len(data) - 3)
        waits = len(self._head) < MAX_HEAD and _HEAD_BEGUN.match(self._head) is not None
        if waits and _HEAD_END.search(self._head, at) is None:
            return b""
        whole, self._head = bytes(self._head), bytearray()
        return whole

    def _begin_http(self) -> RequestHandler:
        inner = self.inner = self._make()
        self._limits.know(self, inner)
        if self._transport is not None:
            inner.connection_made(self._transport)
        return inner

    def data_received(self, data: bytes) -> None:
        if self._refuses:
            self._pause()  # aiohttp may have resumed reading
            return
        if not self.busy and self._limit != HEAD_SECONDS:
            self.since, self._limit = self.loop.time(), HEAD_SECONDS
            self._limits.touch(self)
            self._arm(HEAD_SECONDS)
        if self.inner is None:
            data = self._take_head(data)
            if not data:
                return
        inner = self.inner or self._begin_http()
        inner.data_received(data)
        self._idle += len(data)
        if self._content is not None and self._content.total_bytes != self._seen:
            self._seen, self._idle = self._content.total_bytes, 0
        if self._idle > MAX_IDLE:
            self._stop_idling()

    def _stop_idling(self) -> None:
        """Stop reading if no request begins, or a body cannot be parsed."""
        if not self.busy:
            self._holds = self._transport is not None and self._transport.is_reading()
            self._pause()
        elif self._content is not None and not self._content.is_eof():
            self.abort()

    def begin(self, content: StreamReader | None) -> None:
        """A request is worked on; `content`: its body, if it has one."""
        self.busy += 1
        self._content, self._idle = content, 0
        self._seen = content.total_bytes if content is not None else 0
        if self._holds and self._transport is not None:
            self._holds = False
            self._transport.resume_reading()

    def eof_received(self) -> None:
        if self.inner is not None:
            self.inner.eof_received()

    def pause_writing(self) -> None:
        self._await_reader()
        if self.inner is not None:
            self.inner.pause_writing()

    def resume_writing(self) -> None:
        self._end_stall()
        self.since = self.loop.time()
        if self.inner is not None:
            self.inner.resume_writing()

    def _await_reader(self) -> None:
        """Look again later if the client has read anything until then."""
        if self._transport is not None:
            self._unread = _count_unsent(self._transport)
            self._stall = self.loop.call_later(STALLED_SECONDS, self._check_reader)

    def _check_reader(self) -> None:
        if self._transport is not None and _count_unsent(self._transport) < self._unread:
            self._await_reader()
        else:
            self.abort()

    def _end_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._limits.leave(self)
        self._end_stall()
        if self._timer is not None:
            self._timer.cancel()
        if self.inner is not None:
            self.inner.connection_lost(exc)

    def rest(self) -> None:
        """Begin the wait for the next request."""
        self.busy -= 1
        self._content, self._idle = None, 0
        self.since, self._limit = self.loop.time(), IDLE_SECONDS
        self._limits.touch(self)

    def refuse_rest(self) -> None:
        """Stop reading a body that nobody wants: to discard it costs as much as to use it."""
        self._refuses = True
        self._pause()

    def close_soon(self) -> None:
        """Close the connection after the answer had time to leave."""
        self.loop.call_later(LAST_SECONDS, self.abort)

    def _pause(self) -> None:
        if self._transport is not None and self._transport.is_reading():
            self._transport.pause_reading()

    def abort(self) -> None:
        """Close it at once, and count it no longer."""
        self._limits.leave(self)
        if self._transport is not None:
            self._transport.abort()

    def _check(self) -> None:
        self._timer = None
        left = self.since + self._limit - self.loop.time()
        if self.busy or self._stall is not None:
            self._arm(HEAD_SECONDS)
        elif left > 0.001:
            self._arm(left)
        else:
            self.abort()

    def _arm(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, self._check)


class _BodyWatch:
    """Closes the connection if a body takes longer than `seconds`, or stalls."""

    def __init__(
        self, request: web.Request, connection: _WatchedConnection, seconds: float
    ) -> None:
        self._content, self._connection = request.content, connection
        self._until = connection.loop.time() + seconds
        self._seen = -1
        self._timer = self._arm()

    def end(self) -> None:
        """The request is answered."""
        self._timer.cancel()

    def _arm(self) -> asyncio.TimerHandle:
        self._seen = self._content.total_bytes
        loop = self._connection.loop
        return loop.call_at(min(self._until, loop.time() + BODY_SECONDS), self._check)

    def _check(self) -> None:
        if self._content.is_eof():
            return
        still = self._content.total_bytes == self._seen
        if still or self._connection.loop.time() >= self._until:
            self._connection.abort()
        else:
            self._timer = self._arm()


def _count_unread(request: web.Request) -> float:
    """Return the bytes of the body that are still to come, as far as known."""
    if not request.can_read_body or request.content.is_eof():
        return 0
    announced = request.content_length
    return math.inf if announced is None else announced - request.content.total_bytes


def _count_unsent(transport: asyncio.Transport) -> int:
    """Return the bytes that the client has not acknowledged. Without those in the system's buffer,
    which may hold megabytes, a slow reader could not be told from one who stopped."""
    held = 0
    with contextlib.suppress(OSError, ValueError):
        answer = fcntl.ioctl(
            transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, b"\0" * 4
        )
        held = int.from_bytes(answer, sys.byteorder)
    return transport.get_write_buffer_size() + held


def _room() -> int:
    """Half of the files that the process may open: the rest is for stores, models and tools."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if soft < 0 else max(16, min(MAX_CONNECTIONS, soft // 2))
