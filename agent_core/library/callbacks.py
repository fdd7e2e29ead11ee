"""Functions of the caller that hear of a turn, by their names and as it goes on.

| name | hears |
| --- | --- |
| `stream_delta_callback` | each piece of the answer, as text |
| `reasoning_callback` | each piece of the reasoning, as text |
| `thinking_callback` | True when the model begins to reason, False when it stops |
| `tool_gen_callback` | a call, as soon as it has been read from the answer: ToolCalled |
| `tool_progress_callback` | each call before it runs (ToolCalled) and after it (ToolAnswered) |
| `clarify_callback` | a question to a person: Interrupted |
| `step_callback` | the turn is over: Completed |
| `status_callback` | what it is at now: thinking, executing, waiting, finished, limit or error |
"""

import inspect
import logging
from collections.abc import Callable, Mapping

from msgspec import Struct

from agent_core.errors import Misuse
from agent_core.events import (
    AgentEvent,
    Completed,
    Interrupted,
    ReasoningAdded,
    TokenAdded,
    ToolAnswered,
    ToolCalled,
)

log = logging.getLogger("turnkeeper.agent")

Callback = Callable[..., object]
CALLBACKS = (
    "stream_delta_callback",
    "reasoning_callback",
    "thinking_callback",
    "tool_gen_callback",
    "tool_progress_callback",
    "clarify_callback",
    "step_callback",
    "status_callback",
)
"""Keyword arguments of Agent."""
ENDS = {"stop": "finished", "limit": "limit", "error": "error", "cancelled": "error"}


class ModelAsked(Struct, frozen=True):
    """A model is being asked: only for callbacks."""


class CallbackTeller:
    """Tells the `callbacks` of one turn; sync or async. An exception in one is logged and ends
    nothing. Raises Misuse for a name that there is not."""

    def __init__(self, callbacks: Mapping[str, Callback]) -> None:
        if unknown := [name for name in callbacks if name not in CALLBACKS]:
            raise Misuse(f"no callback {unknown[0]!r}; there are {', '.join(CALLBACKS)}")
        for name, callback in callbacks.items():
            if not callable(callback):
                raise Misuse(f"{name} is a function, not {callback!r:.200}")
        self._callbacks = callbacks
        self._thinks = False
        self._status = ""

    async def hear(self, event: AgentEvent | ModelAsked) -> None:
        """Call the callbacks for `event`."""
        await self._note_thinking(event)
        match event:
            case ModelAsked():
                await self._move("thinking")
            case TokenAdded(text=text):
                await self._tell("stream_delta", text)
            case ReasoningAdded(text=text):
                await self._tell("reasoning", text)
            case ToolCalled():
                await self._tell("tool_gen", event)
                await self._move("executing")
                await self._tell("tool_progress", event)
            case ToolAnswered():
                await self._tell("tool_progress", event)
            case Interrupted():
                await self._move("waiting")
                await self._tell("clarify", event)
            case Completed():
                await self._move(ENDS[event.finish])
                await self._tell("step", event)
            case _:
                pass

    async def _note_thinking(self, event: AgentEvent | ModelAsked) -> None:
        thinks = isinstance(event, ReasoningAdded)
        ends = isinstance(event, TokenAdded | ToolCalled | ModelAsked | Completed)
        if thinks != self._thinks and (thinks or ends):
            self._thinks = thinks
            await self._tell("thinking", thinks)

    async def _move(self, status: str) -> None:
        if status != self._status:
            self._status = status
            await self._tell("status", status)

    async def _tell(self, name: str, what: object) -> None:
        callback = self._callbacks.get(f"{name}_callback")
        if callback is None:
            return
        try:
            done = callback(what)
            if inspect.isawaitable(done):
                await done
        except Exception:
            log.exception("callback_failed", extra={"callback": f"{name}_callback"})
