"""The gateway's one browser: started when first wanted, a session of its own for each workspace.

A session is closed after a quarter of an hour without a call, at the stop of its turn, and with the
gateway; the browser ends with its last session.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.tools.browser import chromium, memory
from agent_core.tools.browser.chromium import Driven
from agent_core.tools.browser.enclosure import Enclosure, Walls
from agent_core.tools.browser.memory import RememberedPage
from agent_core.tools.browser.session import HEIGHT, NO_WAY_OUT, WIDTH, BrowserSession
from agent_core.tools.browser.stream import Origin, ScreenStream
from agent_core.tools.browser.ways import BrowserWays, Connect
from agent_core.tools.web.proxy import Resolve

if TYPE_CHECKING:
    from playwright.async_api import Browser as DrivenBrowser
    from playwright.async_api import BrowserContext, ProxySettings

log = logging.getLogger("turnkeeper.browser")

IDLE = 900.0
"""Seconds without a call after which a session is closed."""
CLOSING = 10.0
"""Seconds for a session, and for the browser, to close."""
ENDED = (
    "The browser did not start: it was ended at once, as it is where memory is short. Try again."
)
SHUT = "The browser is shut down with the gateway. Try again after its restart."


class Browser:
    """Browser sessions by workspace; `async with` ends them all.

    `folder` is the browser's home. `allowed`: places (`host:port`) that the operator opened and
    that may be anywhere; `origin`: where people watch it; `connect`: reaches servers in sandboxes,
    None if that is impossible; `walls`: those of its own sandbox, None for none.
    """

    def __init__(  # noqa: PLR0913 - an argument for each difference between the tiers
        self,
        folder: Path,
        allowed: frozenset[str] = frozenset(),
        resolve: Resolve | None = None,
        *,
        idle: float = IDLE,
        origin: Origin | None = None,
        connect: Connect | None = None,
        walls: Walls | None = None,
    ) -> None:
        self._enclosure = Enclosure(folder, walls) if walls is not None else None
        self._folder, self._idle = folder, idle
        self.ways = BrowserWays(allowed, resolve, connect, self._enclosure)
        self.stream = ScreenStream(self.at_work, origin)
        self._sessions: dict[Path, BrowserSession] = {}
        self._timers: dict[Path, asyncio.TimerHandle] = {}
        self._driven: Driven | None = None
        self._turning = asyncio.Lock()
        """Held while the browser or a session begins or ends."""
        self._stack = AsyncExitStack()
        self._group: asyncio.TaskGroup | None = None

    @property
    def encloses(self) -> bool:
        """True if it has a sandbox of its own."""
        return self._enclosure is not None

    async def __aenter__(self) -> "Browser":
        self._group = await self._stack.enter_async_context(asyncio.TaskGroup())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._group = None
        for timer in self._timers.values():
            timer.cancel()
        async with self._turning:
            await self._end()
        await self._stack.__aexit__(kind, error, at)

    def at_work(self, workspace: Path) -> BrowserSession | None:
        """The workspace's session, if it has one."""
        return self._sessions.get(workspace)

    def remember_page(self, workspace: Path) -> RememberedPage:
        """Return the current page, or the last one before the browser was closed. May block."""
        session = self._sessions.get(workspace)
        return session.remember() if session is not None else memory.recall(workspace)

    @asynccontextmanager
    async def session(self, workspace: Path) -> AsyncIterator[BrowserSession]:
        """Hold the workspace's session for one piece of work at a time, created if needed;
        ToolFailed if that is impossible."""
        async with self._turning:
            if self._group is None:
                raise ToolFailed(SHUT)
            if (known := self._sessions.get(workspace)) is None:
                try:
                    known = self._sessions[workspace] = await self._make_session(workspace)
                except BaseException:
                    self._group.create_task(self._close(None))  # there may be no user left
                    raise
        self._stir(workspace)
        try:
            async with known.lock:
                yield known
        finally:
            if self._sessions.get(workspace) is known:
                self._wait_idle(workspace)

    def halt(self, workspace: Path) -> None:
        """Close the workspace's session, soon."""
        if self._group is not None and workspace in self._sessions:
            self._group.create_task(self._close(workspace))

    async def _make_session(self, workspace: Path) -> BrowserSession:
        if self._driven is None:
            try:
                way = await self.ways.open()
                self._driven = await chromium.start(self._folder, way, self._enclosure)
            except BaseException:
                await self.ways.close()
                raise
            self._driven.browser.on("disconnected", lambda _: self._forget_all())
        return BrowserSession(
            await _make_context(self._driven.browser),
            workspace,
            partial(self._make_inside, workspace, self._driven.browser),
        )

    async def _make_inside(self, workspace: Path, running: "DrivenBrowser") -> "BrowserContext":
        """Make the part of a session for pages of its sandbox."""
        try:
            way = await self.ways.open_inside(workspace)
        except OSError as error:
            raise ToolFailed(f"The sandbox cannot be reached: {error.strerror}.") from None
        return await _make_context(running, chromium.name_proxy(way))

    def _stir(self, workspace: Path) -> None:
        """Cancel the idle timer."""
        if (timer := self._timers.pop(workspace, None)) is not None:
            timer.cancel()

    def _wait_idle(self, workspace: Path) -> None:
        """Start the idle timer, until the next request."""
        self._stir(workspace)
        loop = asyncio.get_running_loop()
        self._timers[workspace] = loop.call_later(self._idle, self.halt, workspace)

    def _forget_all(self) -> None:
        """The browser ended, whoever ended it."""
        self._sessions.clear()
        if self._group is not None and self._driven is not None:
            log.warning("browser_lost")
            self._group.create_task(self._close(None))

    async def _close(self, workspace: Path | None) -> None:
        """Close the session; the browser too, if nobody else uses it."""
        async with self._turning:
            session = self._sessions.pop(workspace, None) if workspace is not None else None
            if session is not None and workspace is not None:
                await _close_quietly(session)
                await self.ways.close_inside(workspace)
            if not self._sessions:
                await self._end()

    async def _end(self) -> None:
        """End the browser."""
        driven, self._driven = self._driven, None
        self._sessions.clear()
        await self.stream.close()
        if driven is not None:
            try:
                async with ambient.limit(CLOSING):
                    await driven.close()
            except Exception:  # boundary: its driver ends with it
                log.warning("browser_close_failed", exc_info=True)
        await self.ways.close()


async def _make_context(
    running: "DrivenBrowser", proxy: "ProxySettings | None" = None
) -> "BrowserContext":
    from playwright.async_api import Error

    try:
        context = await running.new_context(
            viewport={"width": WIDTH, "height": HEIGHT},
            accept_downloads=True,
            service_workers="block",
            proxy=proxy,
        )
        await context.add_init_script(NO_WAY_OUT)
    except Error:  # killed by the memory watchdog or the kernel
        raise ToolFailed(ENDED) from None
    return context


async def _close_quietly(session: BrowserSession) -> None:
    try:
        async with ambient.limit(CLOSING):
            await session.close()
    except Exception:  # boundary: a hanging page is closed with the browser
        log.warning("desk_close_failed", exc_info=True)
