"""Functions of the caller that hear of a turn's events, by their names."""

import inspect
import logging
from collections.abc import Callable, Mapping

from agent_core.errors import Misuse
from agent_core.events import AgentEvent, ReasoningAdded, TokenAdded

log = logging.getLogger("turnkeeper.agent")

Callback = Callable[..., object]
CALLBACKS: dict[str, tuple[str, ...]] = {
    "stream_delta_callback": ("token",),
    "reasoning_callback": ("reasoning",),
    "thinking_callback": ("reasoning",),
    "tool_gen_callback": ("tool_call",),
    "tool_progress_callback": ("tool_call", "tool_result", "terminal_output"),
    "clarify_callback": ("interrupt",),
    "step_callback": ("tool_result", "complete"),
    "status_callback": ("status", "error", "budget", "usage"),
}
"""Keyword arguments of Agent, and the events that each of them gets."""


def check_names(callbacks: Mapping[str, Callback]) -> None:
    """Raise Misuse for a name that there is not."""
    unknown = [name for name in callbacks if name not in CALLBACKS]
    if unknown:
        raise Misuse(f"no callback {unknown[0]!r}; there are {', '.join(CALLBACKS)}")


async def tell(callbacks: Mapping[str, Callback], event: AgentEvent) -> None:
    """Tell those of `event` that want it; an exception in one is logged and ends nothing."""
    kind = event.__struct_config__.tag
    for name, callback in callbacks.items():
        if kind not in CALLBACKS[name]:
            continue
        words = event.text if isinstance(event, TokenAdded | ReasoningAdded) else event
        try:
            done = callback(words)
            if inspect.isawaitable(done):
                await done
        except Exception:
            log.exception("callback_failed", extra={"callback": name})
