"""The web adapter on a free loopback port, with a FakeDesk behind it."""

import contextlib
import dataclasses
import socket
from collections.abc import AsyncIterator
from pathlib import Path

from aiohttp import ClientSession, web

from adapters.web.adapter import WebAdapter
from adapters.web.gate import Gate
from tests.fakes.desk import FakeDesk

SECRET = b"0123456789abcdef0123456789abcdef"
TOKEN = "the-api-token"


@dataclasses.dataclass(kw_only=True)
class WebServer:
    """Where it listens, what is behind it, and `http`, a client that is signed in as the owner."""

    url: str
    port: int
    desk: FakeDesk
    gate: Gate
    adapter: WebAdapter
    http: ClientSession

    def address(self, chat: str, person: str = "owner") -> str:
        return f"web:local::{person}~{chat}::p"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.asynccontextmanager
async def serve(
    folder: Path,
    *,
    desk: FakeDesk | None = None,
    names: tuple[str, ...] = (),
    token: str | None = TOKEN,
) -> AsyncIterator[WebServer]:
    """Serve until the block ends."""
    port = free_port()
    desk = desk or FakeDesk()
    gate = Gate(SECRET, "127.0.0.1", port, names, token)
    adapter = WebAdapter(desk, gate, folder)
    app = web.Application()
    app.add_routes(adapter.routes)
    runner = web.AppRunner(app, shutdown_timeout=0.2)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    url = f"http://127.0.0.1:{port}"
    headers = {"Authorization": f"Bearer {TOKEN}"} if token else {"Origin": url}
    try:
        async with ClientSession(url, headers=headers) as http:
            yield WebServer(url=url, port=port, desk=desk, gate=gate, adapter=adapter, http=http)
    finally:
        await runner.cleanup()
