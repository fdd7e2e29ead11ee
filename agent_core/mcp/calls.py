"""Running calls of servers' tools, and what a server sends before its answer.

The answer arrives in a task of the call's own, so that it survives a turn that parks meanwhile.
What the server sends is handled by the turn's own task, the only one that may use its scope.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.mcp.elicitation import Elicitation, Reaction, put_elicitation
from agent_core.questions import Answer, Question
from agent_core.text import drop_hidden
from agent_core.tools.contract import ToolContext

if TYPE_CHECKING:
    from mcp_types import CallToolResult

PACE = 2.0
"""Seconds between two signs of progress that are shown."""
MAX_SIGNS = 50
"""Signs of progress that are shown of one call."""
MAX_ASKED = 20
"""Things that the server of one call asks a person."""
MAX_HELD = 64
"""Calls that wait for people at once; beyond them the oldest ends."""
MAX_SIGN = 200
"""Characters of one."""
LATE = "No answer in {limit:g} s; it may have taken effect."
Send: TypeAlias = Callable[["RunningCall"], Awaitable["CallToolResult"]]
Spawn: TypeAlias = Callable[[Coroutine[None, None, None]], asyncio.Task[None]]
"""Starts a task that its owner ends."""


class _Progressed(Struct, frozen=True):
    n: int
    text: str


class _Asked(Struct, frozen=True):
    """A question of the server to the person; `answer` is what it waits for."""

    n: int
    wanted: Elicitation
    answer: asyncio.Future[Reaction]


class _Ended(Struct, frozen=True):
    """The end of a call: one of these."""

    result: "CallToolResult | None" = None
    error: Exception | None = None


_Said: TypeAlias = _Progressed | _Asked | _Ended


class RunningCall:
    """A running call. `limit`: seconds for the server; those that a person takes are not counted.
    `notes`: told to the model with the result."""

    def __init__(self, server: str, send: Send, limit: float, spawn: Spawn) -> None:
        self.notes: list[str] = []
        self._server, self._asked = server, 0
        self._pending: _Asked | None = None
        self._limit = self._left = limit
        self._said: asyncio.Queue[_Said] = asyncio.Queue()
        self._signs, self._signed_at = 0, -PACE
        self._task = spawn(self._run(send))

    def cancel(self) -> None:
        """Cancel it and tell the server."""
        self._task.cancel()

    def when_done(self, told: Callable[["RunningCall"], None]) -> None:
        """Call `told` once it is over."""
        self._task.add_done_callback(lambda task: told(self))

    async def note_progress(
        self, progress: float, total: float | None, message: str | None
    ) -> None:
        """Take the server's progress; too much of it is dropped."""
        now = ambient.monotonic()
        if now - self._signed_at >= PACE and self._signs < MAX_SIGNS:
            self._signs += 1
            self._signed_at = now
            text = _describe_progress(progress, total, message)
            self._said.put_nowait(_Progressed(self._signs, text))

    @property
    def asks(self) -> bool:
        """True if it waits for a person."""
        return self._pending is not None

    async def elicit(self, wanted: Elicitation) -> Reaction:
        """Ask the person what the server asks, and wait for the answer."""
        if self._task.done() or self._asked >= MAX_ASKED:
            return Reaction(action="cancel")
        self._asked += 1
        answer: asyncio.Future[Reaction] = asyncio.get_running_loop().create_future()
        self._said.put_nowait(_Asked(self._asked, wanted, answer))
        return await answer

    async def follow(self, context: ToolContext, redact: Callable[[str], str]) -> "CallToolResult":
        """Wait for its end; show its progress until then, and ask its questions. Raises ToolFailed
        after the time limit, Parked while a person is waited for, otherwise what the sending
        raised."""
        while True:
            match self._pending or await self._next():
                case _Asked() as asked:
                    await self._put(asked, context)
                case _Progressed(n=n, text=text):
                    await context.progress(n, redact(text))
                case _Ended(result=result, error=None) if result is not None:
                    return result
                case _Ended(error=error):
                    raise error or ToolFailed(LATE.format(limit=self._limit))

    async def _put(self, asked: _Asked, context: ToolContext) -> None:
        self._pending = asked  # kept if the turn parks

        async def ask(name: str, question: Question) -> Answer:
            return await context.ask(f"asks-{asked.n}-{name}", question)

        reaction = await put_elicitation(self._server, asked.wanted, ask)
        self._pending = None
        if reaction.note:
            self.notes.append(reaction.note)
        if not asked.answer.done():
            asked.answer.set_result(reaction)

    async def _next(self) -> _Said:
        began = ambient.monotonic()
        try:
            async with ambient.limit(max(0.0, self._left)):
                return await self._said.get()
        except TimeoutError:
            raise ToolFailed(LATE.format(limit=self._limit)) from None
        finally:
            self._left -= ambient.monotonic() - began

    async def _run(self, send: Send) -> None:
        current_call.set(self)
        try:
            self._said.put_nowait(_Ended(result=await send(self)))
        except Exception as error:  # noqa: BLE001  # raised again by the caller that awaits it
            self._said.put_nowait(_Ended(error=error))


current_call: ContextVar[RunningCall | None] = ContextVar("current_call", default=None)
"""The call that the running task sends."""


class RunningCalls:
    """The calls of this process that wait for people, by their tokens."""

    def __init__(self) -> None:
        self._held: dict[str, RunningCall] = {}

    def holds(self, token: str) -> bool:
        """Return True if the call is held; see `CallHolder`."""
        return token in self._held

    def holds_turn(self, turn: str) -> bool:
        """A call of the parked turn waits."""
        return any(token.startswith(f"{turn}/") for token in self._held)

    def drop(self, token: str) -> None:
        """Drop the call; see `CallHolder`."""
        call = self._held.pop(token, None)
        if call is not None:
            call.cancel()

    def hold(self, token: str, call: RunningCall) -> None:
        """Hold it until its turn goes on."""
        self._held[token] = call
        for oldest in list(self._held)[:-MAX_HELD]:
            self.drop(oldest)

    def take(self, token: str) -> RunningCall | None:
        """Return and release the call held under this token."""
        return self._held.pop(token, None)

    def end_turn(self, turn: str) -> None:
        """End the calls held for the finished turn."""
        for token in [one for one in self._held if one.startswith(f"{turn}/")]:
            self.drop(token)


def _describe_progress(done: float, total: float | None, message: str | None) -> str:
    far = f"{done:g}/{total:g}" if total else f"{done:g}"
    words = " ".join(drop_hidden(message or "").split())
    return f"{words[:MAX_SIGN]} ({far})" if words else far
