"""Connections, each served in a task of its own, until all are ended at once."""

import asyncio
from collections.abc import Awaitable, Callable

HEAD = 256 * 1024
"""Bytes of a request's or an answer's head."""


class Connections:
    """`answer` serves one; its failure, because either side went away, ends that one alone. With
    `most` at once a further one takes the place of the oldest for which `note_head` was not called
    yet, and is closed if there is none; None: no limit."""

    def __init__(
        self,
        answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
        most: int | None = None,
    ) -> None:
        self._answer, self._most = answer, most
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[object]] = set()
        self._silent: dict[asyncio.Task[object], None] = {}
        """Connections whose request has no whole head yet, oldest first."""

    @property
    def port(self) -> int:
        """The port, 0 while nothing listens."""
        return self._server.sockets[0].getsockname()[1] if self._server is not None else 0

    async def listen(self, port: int = 0, host: str = "127.0.0.1") -> int:
        """Listen at this port, 0 for any; return the port. OSError if it is taken."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=HEAD)
        return self.port

    def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection that came another way."""
        self._tasks.add(asyncio.ensure_future(self._serve(reader, writer)))  # noqa: TID251  # see `close`

    def note_head(self) -> None:
        """Note that the connection served by this task sent the head of a request."""
        task = asyncio.current_task()
        if task is not None:
            self._silent.pop(task, None)

    async def close(self) -> None:
        """Stop listening, and end every connection."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if self._most is not None and len(self._tasks) >= self._most and not self._make_room():
            writer.transport.abort()
            return
        self._tasks.add(task)
        self._silent[task] = None
        try:
            await self._answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass  # either side disconnected
        except asyncio.CancelledError:
            pass  # only `close` awaits this task
        finally:
            self._tasks.discard(task)
            self._silent.pop(task, None)
            writer.transport.abort() if writer.transport.is_closing() else writer.close()

    def _make_room(self) -> bool:
        """End the oldest connection without a head. Return False if there is none."""
        oldest = next(iter(self._silent), None)
        if oldest is None:
            return False
        self._tasks.discard(oldest)
        del self._silent[oldest]
        oldest.cancel()
        return True
