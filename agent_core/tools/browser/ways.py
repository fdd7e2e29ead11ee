"""The ways out of the browser: a guarded proxy to the web for all sessions, and for each session
that sees servers in its own sandbox another one, which leads there and nowhere else.

So no page of the web reaches a sandbox, and no page of a sandbox the web: files of commands cannot
leave by a page. A tab's address decides between the two when it is opened.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

from agent_core.errors import NothingRuns, ToolFailed
from agent_core.tools.browser.enclosure import Enclosure
from agent_core.tools.web.addresses import Target
from agent_core.tools.web.proxy import Barred, GuardedProxy, Resolve, Side

INSIDE = frozenset({"localhost", "127.0.0.1"})
"""The host name of a server in a sandbox."""
MAX_WAYS = 250 * 250
NOTHING_RUNS = "Nothing runs in the sandbox. Start the server by a command in the background first."
ONLY_INSIDE = "A page of the sandbox reaches the servers in the sandbox, and nothing else."
Connect: TypeAlias = Callable[[Path, int], Awaitable[Side]]
"""A connection to a port of a workspace's sandbox. ToolFailed."""


class BrowserWays:
    """The proxies of one browser. `allowed`: places that the operator opened and that may be
    anywhere; `connect`: reaches a sandbox, None if that is impossible."""

    def __init__(
        self,
        allowed: frozenset[str],
        resolve: Resolve | None,
        connect: Connect | None,
        enclosure: Enclosure | None,
    ) -> None:
        self._allowed, self._resolve = allowed, resolve
        self._connect, self._enclosure = connect, enclosure
        self._web = GuardedProxy(allowed, resolve)
        self._inside: dict[Path, tuple[str, GuardedProxy]] = {}
        self._made = 0

    @property
    def leads_inside(self) -> bool:
        """True if servers in sandboxes can be seen."""
        return self._connect is not None

    def is_inside(self, target: Target) -> bool:
        """Return True for a server in the workspace's sandbox; False for a place that an operator
        opened."""
        named = target.host in INSIDE and target.place not in self._allowed
        return named and self._connect is not None

    def why_barred(self, workspace: Path, url: str) -> str:
        """Return the reason why `url` was not reached, "" if it was not barred."""
        known = self._inside.get(workspace)
        inside = known[1].why_barred(url) if known is not None else ""
        return inside or self._web.why_barred(url)

    async def open(self) -> str:
        """The way to the web, as the browser calls it. ToolFailed."""
        if self._enclosure is None:
            return await self._web.open()
        try:
            return await self._enclosure.open(self._web)
        except OSError as error:
            raise ToolFailed(f"The browser's sandbox cannot be made: {error}.") from None

    async def open_inside(self, workspace: Path) -> str:
        """Open the way to the workspace's sandbox, likewise. OSError."""
        proxy = GuardedProxy(frozenset(), reach=partial(self._reach, workspace))
        self._made = self._made % MAX_WAYS + 1
        address = f"127.1.{self._made // 250}.{self._made % 250 + 1}"
        self._inside[workspace] = address, proxy
        if self._enclosure is None:
            return await proxy.open()
        return await self._enclosure.add_way(address, proxy)

    async def close_inside(self, workspace: Path) -> None:
        """The session is closed, and with it its way to its sandbox."""
        if (known := self._inside.pop(workspace, None)) is not None:
            address, proxy = known
            if self._enclosure is not None:
                self._enclosure.remove_way(address)
            await proxy.close()

    async def close(self) -> None:
        """End every connection; another browser may be started."""
        for workspace in list(self._inside):
            await self.close_inside(workspace)
        if self._enclosure is not None:
            self._enclosure.close()
        await self._web.close()
        self._web = GuardedProxy(self._allowed, self._resolve)

    async def _reach(self, workspace: Path, target: Target) -> Side:
        if self._connect is None or target.host not in INSIDE:
            raise Barred(ONLY_INSIDE)
        try:
            return await self._connect(workspace, target.port)
        except NothingRuns:
            raise Barred(NOTHING_RUNS) from None
        except ToolFailed as error:
            raise Barred(str(error)) from None
