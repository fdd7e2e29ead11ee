"""An engine that answers on a Unix socket and has no image, or answers what no engine says."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web


@asynccontextmanager
async def serve_api(folder: Path, info: str = '{"NCPU": 2}') -> AsyncIterator[str]:
    """Its address, as DOCKER_HOST has it."""

    async def tell(request: web.Request) -> web.Response:
        if request.path == "/info":
            return web.Response(text=info)
        return web.json_response({"message": f"No such image: {request.path}"}, status=404)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", tell)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.UnixSite(runner, str(folder / "engine")).start()
        yield f"unix://{folder}/engine"
    finally:
        await runner.cleanup()
