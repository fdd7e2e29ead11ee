"""A listening server with the gateway's own limits on requests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from aiohttp import web

from gateway.ops.connection_limits import ConnectionLimits

HALF = b"GET / HTTP/1.1\r\nHost: a\r\nX-Ha"


@asynccontextmanager
async def served(most: int = 0, folder: Path = Path()) -> AsyncIterator[tuple[str, int]]:
    """`folder`: for the files that it sends."""
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

    async def send_much(request: web.Request) -> web.StreamResponse:
        """An answer in one piece, a file, or a stream that goes on while its client is there."""
        form, size = request.query["as"], int(request.query["bytes"])
        if form == "body":
            return web.Response(body=bytes(size))
        if form == "file":
            file = folder / f"{size}"
            file.write_bytes(bytes(size))
            return web.FileResponse(file)
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(size // 1000):
            await response.write(bytes(1000))
        return response

    app = web.Application(middlewares=[limits.watch])
    app.add_routes([web.get("/", echo), web.post("/", echo), web.get("/slow", slow)])
    app.add_routes([web.post("/refused", refuse), web.get("/much", send_much)])
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
