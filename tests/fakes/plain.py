"""The platform of `examples/plain_adapter.py`: it knows texts and buttons only."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web

from examples.plain_adapter import Happened


class PlainServer:
    """That platform, with one person in it."""

    def __init__(self) -> None:
        self.url = ""
        self.happened: list[Happened] = []
        self.messages: dict[str, dict[str, object]] = {}
        self.fault: tuple[int, str] | None = None
        self.revoked = False
        self._numbers = itertools.count(1)
        self._more = asyncio.Event()

    def do(self, text: str, message: str = "") -> Happened:
        """The person says something, or presses a button of a message."""
        return self.deliver(Happened(str(next(self._numbers)), "ann", text, message))

    def deliver(self, one: Happened) -> Happened:
        """Once more, if it was delivered before."""
        self.happened.append(one)
        self._more.set()
        return one

    async def _look(self, request: web.Request) -> web.Response:
        seen = int(request.match_info["seen"])
        while len(self.happened) <= seen:
            self._more.clear()
            await self._more.wait()
        return web.Response(body=msgspec.json.encode(self.happened[seen:]))

    async def _put(self, request: web.Request) -> web.Response:
        if self.fault is not None:
            (status, text), self.fault = self.fault, None
            return web.Response(status=status, text=text)
        if self.revoked:
            return web.Response(status=401)
        known = request.match_info.get("number")
        if known is not None and known not in self.messages:
            return web.Response(status=410)
        number = known or str(next(self._numbers))
        self.messages[number] = msgspec.json.decode(await request.read())
        return web.Response(text=number)


@asynccontextmanager
async def plain() -> AsyncIterator[PlainServer]:
    server, app = PlainServer(), web.Application()
    app.router.add_get("/happened/{seen}", server._look)
    app.router.add_post("/messages/{chat}", server._put)
    app.router.add_put("/messages/{chat}/{number}", server._put)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield server
    await runner.cleanup()
