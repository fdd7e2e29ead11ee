"""Model calls with a thread that may exceed the window: the thread is shortened as needed, and the
call repeated."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

from msgspec.structs import replace

from agent_core.context.compression import SummaryRequest, Window
from agent_core.errors import ModelFailed
from agent_core.events import ErrorMet
from agent_core.messages import Message
from agent_core.orchestration.brief import Brief, Hands, TurnResult
from agent_core.scope import Scope

T = TypeVar("T")
Ask: TypeAlias = Callable[[Scope, tuple[Message, ...]], Awaitable[T]]
"""Asks a model about its view of the thread. Raises ModelFailed."""


def make_window(brief: Brief, hands: Hands) -> Window:
    """Make the model's view in the turn of `brief`: everything, at first."""
    tools = hands.toolbox.weight(brief.tools) if brief.room.limit else 0
    fixed = len(brief.system.encode("utf-8", "surrogatepass")) + tools
    return Window(brief.room, fixed, brief.text, brief.request_text())


def make_summary_request(brief: Brief, hands: Hands) -> SummaryRequest:
    """Make the request for summaries of older messages in the turn of `brief`."""
    return SummaryRequest(complete=hands.complete, limit=brief.limit, flush=hands.flush)


async def ask_within(
    scope: Scope,
    brief: Brief,
    hands: Hands,
    window: Window,
    thread: tuple[Message, ...],
    ask: Ask[T],
) -> T:
    """Return the result of `ask` for the view of `thread`, which is compressed if it is too long,
    also if the model says so. Raises what `ask` raises, an overflow only if nothing more can be
    left out."""
    part, tries, asking = scope, 0, make_summary_request(brief, hands)
    while True:
        seen = await window.fit(part, thread, asking)
        try:
            return await ask(part, seen)
        except ModelFailed as failed:
            long = failed.fault in ("overflow", "truncated")
            if not long or not window.narrow(thread, failed.window):
                raise
            if failed.fault == "truncated" and not tries:
                scope.emit(ErrorMet(text=str(failed), phrases=failed.phrases), "truncated")
        tries += 1
        part = scope.child(f"shorter-{tries}")


def keep_view(result: TurnResult, history: tuple[Message, ...], window: Window) -> TurnResult:
    """Return `result` with the model's view, if that is no longer everything."""
    if not window.compressed:
        return result
    return replace(result, seen=window.see((*history, *result.messages)))
