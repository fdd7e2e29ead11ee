"""Hooks of the operator: before a tool call, on its result, on a step of a plan.

`pre_tool_call(call)` returns None to allow the call, or a text: the call is refused and the model
reads it. `post_tool_call(call, result)` returns None, or the text that replaces the result.
`verify_step(step)` returns None to have the step judged by the model, "" if it reached its outcome,
or why it did not; checks without a model (files, exit codes) come first.

All may be plain or async functions and get SECONDS. A pre hook that fails or is late refuses the
call; any other such hook changes nothing, and the log says so.
"""

import asyncio
import contextvars
import importlib
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TypeAlias, cast

from msgspec import Struct

from agent_core import ambient
from agent_core.tools.tool_settings import HOOKS
from agent_core.tools.toolbox import Prepared

log = logging.getLogger("turnkeeper.hooks")

SECONDS = 5.0
PRE, POST, VERIFY = "pre_tool_call", "post_tool_call", "verify_step"
FAILED = (
    "the check before tool calls that the operator has set up did not work, so this call was "
    "not run. Tell the person; the log of the gateway says more"
)


class HookedCall(Struct, frozen=True, kw_only=True):
    """A tool call as hooks see it; `arguments` are checked against the tool's schema."""

    call_id: str
    name: str
    arguments: dict[str, object]
    workspace: Path


class DoneStep(Struct, frozen=True, kw_only=True):
    """An ended step of a plan, for hooks; `report` is the agent's own."""

    id: str
    description: str
    outcome: str
    report: str
    workspace: Path


Word: TypeAlias = str | None
PreHook: TypeAlias = Callable[[HookedCall], Word | Awaitable[Word]]
PostHook: TypeAlias = Callable[[HookedCall, str], Word | Awaitable[Word]]
VerifyHook: TypeAlias = Callable[[DoneStep], Word | Awaitable[Word]]


class ToolHooks(Struct, frozen=True, kw_only=True):
    """All hooks, in the order in which they are called."""

    pre: tuple[PreHook, ...] = ()
    post: tuple[PostHook, ...] = ()
    verify: tuple[VerifyHook, ...] = ()

    @property
    def slack(self) -> float:
        """Seconds that the post hooks may add to a call."""
        return SECONDS * len(self.post)

    async def veto(self, item: Prepared, workspace: Path) -> str:
        """Return the reason why the call is refused, "" if it is not. The first hook that refuses
        decides."""
        for hook in self.pre:
            call = _describe_call(item, workspace)
            try:
                said = await _ask(lambda hook=hook, call=call: hook(call))  # type: ignore[misc]
            except Exception:  # boundary: whatever a hook does, the call is not run
                log.exception("hook_failed", extra={"hook": _name(hook), "tool": call.name})
                return FAILED
            if said:
                log.info("hook_refused", extra={"hook": _name(hook), "tool": call.name})
                return said
        return ""

    async def rewrite(self, item: Prepared, workspace: Path, text: str) -> str:
        """The call's result as the hooks want it, each after the one before."""
        for hook in self.post:
            call = _describe_call(item, workspace)
            try:
                said = await _ask(
                    lambda hook=hook, call=call, text=text: hook(call, text)  # type: ignore[misc]
                )
            except Exception:  # boundary: the call has run, its result stands
                log.exception("hook_failed", extra={"hook": _name(hook), "tool": call.name})
                continue
            text = text if said is None else said
        return text


async def verdict(hooks: ToolHooks, step: DoneStep) -> str | None:
    """Return the reason why the step failed, "" if it did not, None if no hook says; the first that
    does decides."""
    for hook in hooks.verify:
        try:
            said = await _ask(lambda hook=hook: hook(step))  # type: ignore[misc]
        except Exception:  # boundary: the step is judged as without the hook
            log.exception("hook_failed", extra={"hook": _name(hook), "step": step.id})
            continue
        if said is not None:
            return said
    return None


def load(entries: Iterable[str]) -> ToolHooks:
    """The hooks that `package.module:function` name; the function's name says which of the kinds
    it is. Raises SettingsError."""
    found: dict[str, list[Callable[..., object]]] = {PRE: [], POST: [], VERIFY: []}
    for entry in entries:
        module, colon, name = entry.partition(":")
        kind = next((one for one in found if name.startswith(one)), "")
        if not (module and colon and kind):
            mend = (
                f"write package.module:{PRE}, :{POST} or :{VERIFY} (more may follow in the name)."
            )
            raise HOOKS.error(entry, mend)
        found[kind].append(_import_hook(entry, module, name))
    return ToolHooks(
        pre=cast(tuple[PreHook, ...], tuple(found[PRE])),
        post=cast(tuple[PostHook, ...], tuple(found[POST])),
        verify=cast(tuple[VerifyHook, ...], tuple(found[VERIFY])),
    )


def _import_hook(entry: str, module: str, name: str) -> Callable[..., object]:
    try:
        hook = getattr(importlib.import_module(module), name, None)
    except Exception as error:  # boundary: third-party code
        mend = f"cannot be imported ({type(error).__name__}: {error})."
        raise HOOKS.error(entry, mend) from error
    if not callable(hook):
        raise HOOKS.error(entry, f"{module} has no function {name}.")
    words = "the step" if name.startswith(VERIFY) else "the call"
    words, takes = (f"{words} and its result", 2) if name.startswith(POST) else (words, 1)
    try:
        inspect.signature(hook).bind(*range(takes))
    except TypeError:
        raise HOOKS.error(entry, f"must take {words}.") from None
    return cast(Callable[..., object], hook)


def _describe_call(item: Prepared, workspace: Path) -> HookedCall:
    arguments = item.arguments.model_dump(mode="json")
    return HookedCall(
        call_id=item.call.id, name=item.tool.name, arguments=arguments, workspace=workspace
    )


async def _ask(hook: Callable[[], object]) -> Word:
    """Return the hook's answer; whatever it raises, and TypeError if that is no text."""
    try:
        async with ambient.limit(SECONDS):
            said = await _call_in_thread(hook)
            if inspect.isawaitable(said):
                said = await said
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("the hook cancelled itself") from error
    if said is not None and not isinstance(said, str):
        raise TypeError(f"a hook must return a text or None, not {type(said).__name__}")
    return said


async def _call_in_thread(hook: Callable[[], object]) -> object:
    """Call it in a thread of its own: one that never returns blocks neither the loop nor, as in a
    pool, other work or the end of the process. An async function's coroutine is returned."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[object] = loop.create_future()

    def settle(value: object, error: Exception | None) -> None:
        if answer.done():  # nobody awaits it any more
            if inspect.iscoroutine(value):
                value.close()
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(value)

    def work() -> None:
        value, failed = None, None
        try:
            value = hook()
        except Exception as error:  # noqa: BLE001  # raised again where the hook is awaited
            failed = error
        except SystemExit as error:
            failed = RuntimeError(f"the hook called exit({error.code})")
        try:
            loop.call_soon_threadsafe(settle, value, failed)
        except RuntimeError:
            log.warning("hook_too_late")  # the loop is closed

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), daemon=True, name="hook").start()
    return await answer


def _name(hook: Callable[..., object]) -> str:
    return str(getattr(hook, "__qualname__", type(hook).__name__))
