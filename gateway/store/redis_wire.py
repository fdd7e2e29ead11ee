"""One connection to Redis with group commit: requests made during a round trip share the next one,
and all run in the order in which they were made.

A trip is bounded in time and in attempts. A server that is no longer master is left: its name is
resolved anew, as it may be another machine by now.
"""

import asyncio
import itertools
import logging
import re
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias, cast

import hiredis
from redis import Redis as BlockingRedis
from redis.asyncio import Connection, Redis, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import (
    MasterDownError,
    NoPermissionError,
    NoScriptError,
    ReadOnlyError,
    ResponseError,
)
from redis.exceptions import TimeoutError as Unanswered
from redis.retry import Retry as BlockingRetry
from redis.typing import EncodableT

from agent_core import ambient
from gateway.errors import Fenced, StoreFailed, Unstorable
from gateway.store.redis_scripts import TEXTS

log = logging.getLogger("turnkeeper.store")

Command: TypeAlias = "tuple[str | bytes | int | float, ...]"
Reply: TypeAlias = object
MAX_AT_ONCE = 256
_DAMAGED = re.compile(
    r"WRONGTYPE|not an integer|not a (?:valid )?float|user_script:\d+: attempt to "
)
"""Refusals that tell of the entry's content, not of the server's state."""
PATIENCE = 2.0
"""Seconds that a server gets for a connection, and for each reply."""
MAX_SECONDS = 5.0
"""Seconds that a trip may take with all its attempts."""
PAUSES = (0.05, 0.25, 1.0)
"""Seconds before each attempt after the first."""
_MARKS = (f"{ambient.secret_id()}.{n}".encode() for n in itertools.count())
"""Each trip ends with another one, which the server repeats after its replies."""
MOVED = (ReadOnlyError, MasterDownError)
"""A reply that says: this is no master (any more)."""


class _PackedByHiredis:
    """Encodes commands with hiredis, which redis-py leaves to its synchronous client: a command of
    many parts costs a tenth."""

    def pack_command(self, *args: EncodableT) -> list[bytes]:
        name = args[0] if isinstance(args[0], bytes) else str(args[0]).encode()
        return [hiredis.pack_command(cast(Any, (*name.split(), *args[1:])))]


class _PackingConnection(_PackedByHiredis, Connection):
    pass


class _PackingSSLConnection(_PackedByHiredis, SSLConnection):
    pass


class _PackingUnixConnection(_PackedByHiredis, UnixDomainSocketConnection):
    pass


_PACKING = {
    Connection: _PackingConnection,
    SSLConnection: _PackingSSLConnection,
    UnixDomainSocketConnection: _PackingUnixConnection,
}


Greeting: TypeAlias = Callable[[AbstractConnection], Awaitable[None]]
"""Prepares a new connection, before anything else is sent over it."""


def connect(url: str, *, listening: bool = False, greet: Greeting | None = None) -> Redis:
    """Make a client that tries once, and waits for a reply at most `PATIENCE` seconds unless it
    only listens."""
    client = Redis.from_url(
        url,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
        socket_timeout=None if listening else PATIENCE,
        socket_connect_timeout=PATIENCE,
    )
    pool = client.connection_pool
    pool.connection_class = _PACKING.get(pool.connection_class, pool.connection_class)
    if greet is not None:
        pool.connection_kwargs["redis_connect_func"] = greet
    return client


def connect_blocking(url: str) -> BlockingRedis:
    """Make a client like `connect` for threads: megabytes cost it half of what they cost on the
    event loop."""
    return BlockingRedis.from_url(
        url,
        retry=BlockingRetry(NoBackoff(), 0),
        protocol=2,
        socket_timeout=PATIENCE,
        socket_connect_timeout=PATIENCE,
        socket_read_size=1 << 18,
    )


class RedisRequest(Protocol):
    """A request of a wire. Every command must be idempotent: after a lost reply it is sent
    again."""

    def commands(self) -> Sequence[Command]:
        """Return the commands, when the request's turn has come. StoreFailed, Fenced, or an
        encoding error; it is passed to `fail`."""

    def settle(self, replies: Sequence[Reply]) -> None:
        """Take one reply for each command; an Exception among them is that command's failure."""

    def fail(self, error: Exception) -> None:
        """Take a failure: the commands were not sent, or their outcome is unknown."""


class _Call:
    """Commands whose replies a future gets; without a future they are dropped."""

    def __init__(
        self, commands: Sequence[Command], future: asyncio.Future[list[Reply]] | None
    ) -> None:
        self._commands = commands
        self._future = future

    def commands(self) -> Sequence[Command]:
        return self._commands

    def settle(self, replies: Sequence[Reply]) -> None:
        for command, reply in zip(self._commands, replies, strict=True):
            if isinstance(reply, Exception):
                kind = Unstorable if _is_damage(command, reply) else StoreFailed
                return self.fail(kind(f"refused by the store: {reply}"))
        if self._future is not None and not self._future.done():
            self._future.set_result(list(replies))
        return None

    def fail(self, error: Exception) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_exception(error)


def _is_damage(command: Command, refusal: Exception) -> bool:
    """Return True if the refusal is that of one conversation, whose entries are damaged: no retry
    helps it, and the others must not wait for it. A list of all is mended by an operator."""
    keys = (part for part in command[1:4] if isinstance(part, str))
    own = any(one.startswith("tk:{") and ":" in one.partition("}")[0][3:] for one in keys)
    return own and _DAMAGED.search(str(refusal)) is not None


def _look(future: asyncio.Future[list[Reply]]) -> None:
    """Mark an exception that nobody awaits as retrieved."""
    if not future.cancelled():
        future.exception()


class RedisWire:
    """Sends requests in order over one connection, many in one round trip. `moved` is called when
    the server says that it is no master. `failed`: why nothing is sent any more, "" while all is
    well."""

    def __init__(self, client: Redis, moved: Callable[[], None] = lambda: None) -> None:
        self._client = client
        self._moved = moved
        self._leaving = False
        self._queue: deque[RedisRequest] = deque()
        self._wake = asyncio.Event()
        self._closing = False
        self.trips = 0
        self.failed = ""
        self._task = asyncio.create_task(self._run(), name="redis-wire")  # noqa: TID251  # lives until close

    def put(self, request: RedisRequest) -> None:
        """Queue `request` in this very step."""
        if self._closing or self.failed:
            request.fail(StoreFailed(self.failed or "the store is closed"))
            return
        self._queue.append(request)
        self._wake.set()

    async def call(self, *commands: Command) -> list[Reply]:
        """The replies of `commands`; StoreFailed if one of them was refused."""
        return await self.ask(*commands)

    def ask(self, *commands: Command) -> "asyncio.Future[list[Reply]]":
        """Queue `commands` without awaiting, and return a future of their replies; it may be
        dropped."""
        future: asyncio.Future[list[Reply]] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_look)
        self.put(_Call(commands, future))
        return future

    def tell(self, *commands: Command) -> None:
        """Queue `commands` whose replies do not matter."""
        self.put(_Call(commands, None))

    def leave(self) -> None:
        """Send the next trip over a new connection."""
        self._leaving = True

    async def close(self) -> None:
        """Send what is queued, then close."""
        self._closing = True
        self._wake.set()
        await self._task
        await self._client.aclose()

    async def _run(self) -> None:
        try:
            await self._serve()
        except Exception as error:  # waiters must not wait forever
            log.exception("wire_failed")
            self.failed = f"the store's connection ended: {error!r}"
            while self._queue:
                self._queue.popleft().fail(StoreFailed(self.failed))

    async def _serve(self) -> None:
        while not (self._closing and not self._queue):
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                count = min(MAX_AT_ONCE, len(self._queue))
                await self._trip([self._queue.popleft() for _ in range(count)])

    async def _trip(self, requests: Sequence[RedisRequest]) -> None:
        ready: list[tuple[RedisRequest, Sequence[Command]]] = []
        for request in requests:
            try:
                ready.append((request, [_encode_command(one) for one in request.commands()]))
            except (StoreFailed, Fenced) as error:
                request.fail(error)
            except Exception as error:  # noqa: BLE001  # a bad request must not end the others
                request.fail(Unstorable(f"cannot be encoded: {error}"))
        try:
            replies = await self._send([one for _, commands in ready for one in commands])
        except Exception as error:  # noqa: BLE001  # whatever the client raises, the wire lives on
            for request, _ in ready:
                request.fail(StoreFailed(f"Redis could not be reached: {error}"))
            return
        start = 0
        for request, commands in ready:
            try:
                request.settle(replies[start : start + len(commands)])
            except Exception as error:  # noqa: BLE001  # a bad reply must not end other requests
                request.fail(StoreFailed(f"not understood: {error!r}"))
            start += len(commands)

    async def _send(self, commands: Sequence[Command]) -> list[Reply]:
        """The replies of `commands`, which may have been sent several times."""
        if not commands:
            return []
        failed: Exception = Unanswered("no answer in time")
        try:
            async with ambient.limit(MAX_SECONDS):
                for pause in (0.0, *PAUSES):
                    if pause:
                        await ambient.wait(pause)
                    try:
                        return await self._attempt(commands)
                    except (Disconnected, Unanswered, OSError, *MOVED) as error:
                        failed = error
                        self._leaving = True
        except TimeoutError:
            self._leaving = True
        except Exception:
            self._leaving = True  # it may have been left half greeted
            raise
        raise failed

    async def _attempt(self, commands: Sequence[Command]) -> list[Reply]:
        if self._leaving:
            self._leaving = False
            await self._client.connection_pool.disconnect()
        replies = await self._pipe(commands)
        if any(isinstance(reply, NoScriptError) for reply in replies):
            await load(self._client)
            replies = await self._pipe(commands)
        for reply in replies:
            if isinstance(reply, MOVED):
                self._moved()
                raise reply
        return replies

    async def _pipe(self, commands: Sequence[Command]) -> list[Reply]:
        """Send the commands and read their replies. redis-py's pipeline, which does the same, takes
        longer for each."""
        self.trips += 1
        pool = self._client.connection_pool
        connection: AbstractConnection = await cast(Any, pool).get_connection()
        try:
            return await exchange(connection, commands)
        finally:
            await pool.release(connection)


async def exchange(connection: AbstractConnection, commands: Sequence[Command]) -> list[Reply]:
    """Send the commands and read a reply for each; a refusal is one too. Disconnected if they are
    no replies to these commands: a proxy may mix up those of several requests."""
    mark = next(_MARKS)
    asked = (*commands, ("ECHO", mark))
    await connection.send_packed_command(connection.pack_commands(asked))
    *replies, echo = [await _read_reply(connection) for _ in asked]
    if echo != mark and not _is_without_mark(echo, replies):
        raise Disconnected("its replies are not those of the requests")
    return replies


def _is_without_mark(echo: Reply, replies: Sequence[Reply]) -> bool:
    """Return True if the server refuses marks: to this user, or as it refuses everything now."""
    if isinstance(echo, NoPermissionError) or str(echo).startswith("unknown command"):
        return True
    return all(isinstance(one, ResponseError) for one in (echo, *replies))


async def _read_reply(connection: AbstractConnection) -> Reply:
    try:
        return cast(Reply, await connection.read_response())
    except ResponseError as error:
        return error


def _encode_command(command: Command) -> tuple[bytes | int | float, ...]:
    """Encode texts as bytes: a text that cannot be encoded fails here, alone, and replies stay
    raw."""
    return tuple([part.encode() if isinstance(part, str) else part for part in command])


async def load(client: Redis) -> None:
    """Put all scripts into the server's cache; a restart or SCRIPT FLUSH loses them."""
    pipe = client.pipeline(transaction=False)
    for text in TEXTS.values():
        pipe.execute_command("SCRIPT LOAD", text)
    await pipe.execute()
