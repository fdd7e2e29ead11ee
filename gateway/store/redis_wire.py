"""One connection to Redis that sends what has gathered while it waited: requests made in the same
round trip share the next one (group commit), and all run in the order in which they were made."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Protocol, TypeAlias, cast

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

from gateway.errors import Fenced, StoreFailed
from gateway.store.redis_scripts import ALL

Command: TypeAlias = "tuple[str | bytes | int | float, ...]"
Reply: TypeAlias = object
MOST_AT_ONCE = 256


class Request(Protocol):
    """What a wire carries. Every command must be harmless when sent twice: a lost reply means
    that it is sent again."""

    def commands(self) -> Sequence[Command]:
        """What to send, asked for when its turn has come. May raise StoreFailed or Fenced, or
        what encoding raises: that is what `fail` then gets."""

    def settle(self, replies: Sequence[Reply]) -> None:
        """One reply a command; an Exception among them is that command's failure."""

    def fail(self, error: Exception) -> None:
        """Nothing is known of the commands, or they were not sent."""


class _Call:
    """Commands whose replies a future gets; without a future nobody cares."""

    def __init__(
        self, commands: Sequence[Command], future: asyncio.Future[list[Reply]] | None
    ) -> None:
        self._commands = commands
        self._future = future

    def commands(self) -> Sequence[Command]:
        return self._commands

    def settle(self, replies: Sequence[Reply]) -> None:
        for reply in replies:
            if isinstance(reply, Exception):
                return self.fail(StoreFailed(f"refused by the store: {reply}"))
        if self._future is not None and not self._future.done():
            self._future.set_result(list(replies))
        return None

    def fail(self, error: Exception) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_exception(error)


class Wire:
    """Sends requests in order over one connection, many in one round trip."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._queue: deque[Request] = deque()
        self._wake = asyncio.Event()
        self._closing = False
        self.trips = 0
        self._task = asyncio.create_task(self._run(), name="redis-wire")  # noqa: TID251  # lives until close

    def put(self, request: Request) -> None:
        """Queue `request` in this very step."""
        if self._closing:
            request.fail(StoreFailed("the store is closed"))
            return
        self._queue.append(request)
        self._wake.set()

    async def call(self, *commands: Command) -> list[Reply]:
        """The replies of `commands`; StoreFailed if one of them was refused."""
        future: asyncio.Future[list[Reply]] = asyncio.get_running_loop().create_future()
        self.put(_Call(commands, future))
        return await future

    def tell(self, *commands: Command) -> None:
        """Queue `commands` whose outcome decides nothing."""
        self.put(_Call(commands, None))

    async def close(self) -> None:
        """Send what is queued and end."""
        self._closing = True
        self._wake.set()
        await self._task

    async def _run(self) -> None:
        while not (self._closing and not self._queue):
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                count = min(MOST_AT_ONCE, len(self._queue))
                await self._trip([self._queue.popleft() for _ in range(count)])

    async def _trip(self, requests: Sequence[Request]) -> None:
        ready: list[tuple[Request, Sequence[Command]]] = []
        for request in requests:
            try:
                ready.append((request, [tuple(map(_plain, one)) for one in request.commands()]))
            except (StoreFailed, Fenced) as error:
                request.fail(error)
            except (TypeError, ValueError, OverflowError) as error:
                request.fail(StoreFailed(f"cannot be encoded: {error}"))
        try:
            replies = await self._send([one for _, commands in ready for one in commands])
        except Exception as error:  # noqa: BLE001  # whatever the client raises, the wire lives on
            for request, _ in ready:
                request.fail(StoreFailed(f"Redis could not be reached: {error}"))
            return
        start = 0
        for request, commands in ready:
            request.settle(replies[start : start + len(commands)])
            start += len(commands)

    async def _send(self, commands: Sequence[Command]) -> list[Reply]:
        if not commands:
            return []
        replies = await self._pipe(commands)
        if any(isinstance(reply, NoScriptError) for reply in replies):
            await load(self._client)
            replies = await self._pipe(commands)
        return replies

    async def _pipe(self, commands: Sequence[Command]) -> list[Reply]:
        pipe = self._client.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)
        self.trips += 1
        return cast("list[Reply]", await pipe.execute(raise_on_error=False))


def _plain(part: str | bytes | int | float) -> bytes | int | float:
    """Text as bytes: what cannot be encoded fails here, alone, and replies stay as they come."""
    return part.encode() if isinstance(part, str) else part


async def load(client: Redis) -> None:
    """Put all scripts into the server's cache; a restart or SCRIPT FLUSH loses them."""
    pipe = client.pipeline(transaction=False)
    for source in ALL:
        pipe.execute_command("SCRIPT LOAD", source)
    await pipe.execute()
