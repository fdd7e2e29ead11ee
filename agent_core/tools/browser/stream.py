"""A live view of the browser: a page on an origin of its own that takes no input.

Its address cannot be guessed, and is valid as long as its session. It listens on loopback, and is
shown at the origin of apps (`Origin`); the browser itself cannot reach it, nor anything else there.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from agent_core import ambient
from agent_core.tools.browser.session import BrowserSession

if TYPE_CHECKING:
    from aiohttp import web

PACE = 0.8
"""Seconds between two pictures."""
QUALITY = 60
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Browser</title>
<meta name="viewport" content="width=device-width">
<style>body{margin:0;background:#222;color:#eee;font:16px system-ui}img{width:100%;display:block}
p{margin:0;padding:.6em}</style><p id="s" role="status">Waiting for the first picture…</p>
<img id="i" alt="What the browser shows now" hidden>
<script>const s=document.getElementById('s'),i=document.getElementById('i');
const w=new WebSocket(location.href.replace(/^http/,'ws')+'/live');w.binaryType='blob';let u='';
w.onmessage=(m)=>{URL.revokeObjectURL(u);u=URL.createObjectURL(m.data);i.src=u;i.hidden=false;
s.textContent='Live. You can watch; nothing can be clicked here.'};
w.onclose=()=>{s.textContent='The browser was closed.'};</script></html>"""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src "
    "'unsafe-inline'; img-src blob:; connect-src 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


NAME = "turnkeeper-watch"
"""Prefix of an address's path."""


class Origin(Protocol):
    """The origin where people see servers on loopback."""

    @property
    def is_public(self) -> bool:
        """People reach it from other machines."""

    async def mount(self, name: str, port: int) -> str:
        """Show the server at `port` under `/name/`; return its address. OSError."""

    def unmount(self, name: str) -> None:
        """Remove this mount."""


class ScreenStream:
    """Serves from the first requested address until `close`; without an `origin` on loopback
    alone."""

    def __init__(
        self, at_work: Callable[[Path], BrowserSession | None], origin: Origin | None = None
    ) -> None:
        self._at_work, self._origin = at_work, origin
        self._runner: web.AppRunner | None = None
        self._places: dict[str, Path] = {}

    @property
    def is_public(self) -> bool:
        """True if it can be watched from other machines."""
        return self._origin is not None and self._origin.is_public

    async def address(self, session: BrowserSession) -> str:
        """Return the address where the session can be watched. OSError."""
        from aiohttp import web

        if self._runner is None:
            app = web.Application()
            app.router.add_get(f"/{NAME}/{{secret}}", self._page)
            app.router.add_get(f"/{NAME}/{{secret}}/live", self._live)
            self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
            await self._runner.setup()
            await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._places[session.secret] = session.workspace
        port = self._runner.addresses[0][1]
        base = f"http://127.0.0.1:{port}/{NAME}"
        if self._origin is not None:
            base = await self._origin.mount(NAME, port)
        return f"{base}/{session.secret}"

    async def close(self) -> None:
        """Invalidate all addresses."""
        runner, self._runner = self._runner, None
        self._places.clear()
        if runner is not None:
            if self._origin is not None:
                self._origin.unmount(NAME)
            await runner.cleanup()

    def _session(self, secret: str) -> BrowserSession | None:
        place = self._places.get(secret)
        session = self._at_work(place) if place is not None else None
        return session if session is not None and session.secret == secret else None

    async def _page(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        if self._session(request.match_info["secret"]) is None:
            raise web.HTTPNotFound
        return web.Response(text=PAGE, content_type="text/html", headers=HEADERS)

    async def _live(self, request: "web.Request") -> "web.StreamResponse":
        """Stream a screenshot whenever something changes, as long as the session exists."""
        from aiohttp import web

        secret = request.match_info["secret"]
        if self._session(secret) is None:
            raise web.HTTPNotFound
        socket = web.WebSocketResponse(heartbeat=20.0)
        await socket.prepare(request)
        async with asyncio.TaskGroup() as group:
            showing = group.create_task(self._show(secret, socket))
            async for _ in socket:
                pass  # viewers send nothing; this detects their disconnect
            showing.cancel()
        return socket

    async def _show(self, secret: str, socket: "web.WebSocketResponse") -> None:
        last = b""
        with contextlib.suppress(ConnectionError):
            while (session := self._session(secret)) is not None:
                shot = await session.take_screenshot(QUALITY)
                if shot and (digest := hashlib.sha256(shot).digest()) != last:
                    last = digest
                    await socket.send_bytes(shot)
                await ambient.wait(PACE)
            await socket.close()
