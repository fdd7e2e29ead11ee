"""A listening server with the gateway's own limits on requests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from aiohttp import web

from gateway.ops.connection_limits import ConnectionLimits

HALF = b"GET / HTTP/1.1\r\nHost: a\r\nX-Ha"


@asynccontextmanager
async def served(most: int = 0) -> AsyncIterator[tuple[str, int]]:
    limits = ConnectionLimits(most)

    async def echo(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    async def slow(request: web.Request) -> web.StreamResponse:
        """Its head says that it is under way."""
        response = web.StreamResponse()
        response.content_length = len("slow")
        await response.prepare(request)
        await asyncio.sleep(0.5)
        await response.write(b"slow")
        return response

    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=413, text="refused")

    app = web.Application(middlewares=[limits.watch])
    app.add_routes([web.get("/", echo), web.post("/", echo), web.get("/slow", slow)])
    app.add_routes([web.post("/refused", refuse)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    make = runner.server
    assert make is not None
    loop = asyncio.get_running_loop()
    server = await loop.create_server(partial(limits.protocol, make), "127.0.0.1", 0)
    try:
        yield "127.0.0.1", server.sockets[0].getsockname()[1]
    finally:
        server.close()
        limits.close()
        await runner.cleanup()
