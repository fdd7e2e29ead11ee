"""Calls of servers' tools under way: what a server says before it answers.

The answer comes to a task of the call's own, so that it outlives the run of a turn that parks
meanwhile. What it says is taken in by the turn's own task, the only one that may use its scope.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.tools.contract import ToolContext

if TYPE_CHECKING:
    from mcp_types import CallToolResult

PACE = 2.0
"""Seconds between two signs of progress that are shown."""
MAX_SIGNS = 50
"""Signs of progress that are shown of one call."""
MAX_SIGN = 200
"""Characters of one."""
LATE = "No answer in {limit:g} s; it may have taken effect."
Send: TypeAlias = Callable[["RunningCall"], Awaitable["CallToolResult"]]
Spawn: TypeAlias = Callable[[Coroutine[None, None, None]], asyncio.Task[None]]
"""Starts a task that its owner ends."""


class _Progressed(Struct, frozen=True):
    n: int
    text: str


class _Ended(Struct, frozen=True):
    """The call is over, with one of these."""

    result: "CallToolResult | None" = None
    error: Exception | None = None


class RunningCall:
    """A call under way. `limit`: seconds that the server may take."""

    def __init__(self, send: Send, limit: float, spawn: Spawn) -> None:
        self._limit = self._left = limit
        self._said: asyncio.Queue[_Progressed | _Ended] = asyncio.Queue()
        self._signs, self._signed_at = 0, -PACE
        self._task = spawn(self._run(send))

    def cancel(self) -> None:
        """End it; the server is told."""
        self._task.cancel()

    async def note_progress(
        self, progress: float, total: float | None, message: str | None
    ) -> None:
        """What the server says of how far it is; too much of it is left out."""
        now = ambient.monotonic()
        if now - self._signed_at >= PACE and self._signs < MAX_SIGNS:
            self._signs += 1
            self._signed_at = now
            text = _describe_progress(progress, total, message)
            self._said.put_nowait(_Progressed(self._signs, text))

    async def follow(self, context: ToolContext, redact: Callable[[str], str]) -> "CallToolResult":
        """Wait for its end, and show what it says until then. Raises ToolFailed where it takes too
        long, else what the sending raised."""
        while True:
            match await self._next():
                case _Progressed(n=n, text=text):
                    await context.progress(n, redact(text))
                case _Ended(result=result, error=None) if result is not None:
                    return result
                case _Ended(error=error):
                    raise error or ToolFailed(LATE.format(limit=self._limit))

    async def _next(self) -> _Progressed | _Ended:
        began = ambient.monotonic()
        try:
            async with ambient.limit(max(0.0, self._left)):
                return await self._said.get()
        except TimeoutError:
            raise ToolFailed(LATE.format(limit=self._limit)) from None
        finally:
            self._left -= ambient.monotonic() - began

    async def _run(self, send: Send) -> None:
        try:
            self._said.put_nowait(_Ended(result=await send(self)))
        except Exception as error:  # noqa: BLE001  # raised again by who follows the call
            self._said.put_nowait(_Ended(error=error))


def _describe_progress(done: float, total: float | None, message: str | None) -> str:
    far = f"{done:g}/{total:g}" if total else f"{done:g}"
    words = " ".join((message or "").split())
    return f"{words[:MAX_SIGN]} ({far})" if words else far
