"""A proxy on loopback between a client and a server: it carries, cuts, stalls, delays, loses what
comes back, and leads elsewhere. What a network does, when a test says so."""

import asyncio
from contextlib import suppress
from pathlib import Path

SIZE = 1 << 16


class TcpProxy:
    """Listens on a free port and carries to `target`: (host, port), or a unix socket's path."""

    def __init__(self, target: tuple[str, int] | Path) -> None:
        self.target = target
        self.port = 0
        self.delay = 0.0
        """Seconds that each piece takes on its way, in either direction."""
        self.connections = 0
        """Connections so far."""
        self.lost = 0
        """Pieces of replies that were lost."""
        self._refusing = False
        self._losing = False
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._carriers: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "TcpProxy":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        self.stall(False)
        for carrier in self._carriers:
            carrier.cancel()
        await asyncio.gather(*self._carriers, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        """The address of a Redis behind it."""
        return f"redis://127.0.0.1:{self.port}/0"

    def cut(self, refuse: bool = True) -> None:
        """Break all connections; with `refuse` new ones break at once, until `heal`."""
        self._refusing = refuse
        for writer in list(self._writers):
            writer.transport.abort()

    def stall(self, stalled: bool = True) -> None:
        """Carry nothing, and break nothing: a partition without a word."""
        if stalled:
            self._flowing.clear()
        else:
            self._flowing.set()

    def lose_replies(self, losing: bool = True) -> None:
        """Carry requests and lose what comes back."""
        self._losing = losing

    @property
    def broken(self) -> bool:
        """Nobody gets through."""
        return self._refusing or self._losing or not self._flowing.is_set()

    def heal(self) -> None:
        """Carry again."""
        self._refusing = self._losing = False
        self.delay = 0.0
        self.stall(False)

    def retarget(self, target: tuple[str, int] | Path) -> None:
        """Lead new connections elsewhere, as a name does that means another machine now. Those
        that are open stay where they are."""
        self.target = target

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self._refusing:
            writer.transport.abort()
            return
        try:
            if isinstance(self.target, Path):
                back, forth = await asyncio.open_unix_connection(self.target)
            else:
                back, forth = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, forth}
        pairs = ((reader, forth, False), (back, writer, True))
        carriers = [asyncio.create_task(self._carry(*pair)) for pair in pairs]
        self._carriers.update(carriers)
        try:
            await asyncio.wait(carriers, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for carrier in carriers:
                carrier.cancel()
            self._carriers.difference_update(carriers)
            for one in (writer, forth):
                self._writers.discard(one)
                one.close()

    async def _carry(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, replies: bool
    ) -> None:
        with suppress(OSError):
            while data := await source.read(SIZE):
                if self.delay:
                    await asyncio.sleep(self.delay)
                await self._flowing.wait()
                if replies and self._losing:
                    self.lost += 1
                    continue
                sink.write(data)
                await sink.drain()
