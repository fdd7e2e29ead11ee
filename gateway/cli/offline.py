"""Answers of the command line while no gateway runs: from the store, under the folder's lock."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from agent_core import ambient
from gateway.errors import StoreFailed
from gateway.ops import control, lock
from gateway.ops.stored_contents import make_trail
from gateway.ops.upkeep import StoreUpkeep
from gateway.settings import Settings
from gateway.wiring import assembly
from gateway.wiring.jobs import console_alone

PATIENCE = 30.0
"""Seconds that who holds the folder gets to begin to answer, or to end."""
LOOK_EVERY = 0.1
"""Seconds between two looks for the gateway that begins."""


async def _ask_who_begins(
    home: Path, request: control.ControlRequest, show_progress: Callable[[str], None]
) -> control.ControlAnswer | None:
    """Return the answer of a gateway that holds the folder but has no socket yet; None once nobody
    holds it."""
    end = ambient.monotonic() + PATIENCE
    while holder := lock.find_holder(home):
        answer = await asyncio.to_thread(control.ask, home, request, show_progress)
        if answer is not None:
            return answer
        if ambient.monotonic() > end:
            text = (
                f"Process {holder} works on this folder and does not answer: it starts or ends, or"
                " it is another command. Ask again once it has."
            )
            return control.ControlAnswer(text=text, ok=False)
        await ambient.wait(LOOK_EVERY)
    return None


async def answer_offline(
    settings: Settings, request: control.ControlRequest, show_progress: Callable[[str], None]
) -> control.ControlAnswer:
    """Answer a request that needs no running gateway."""
    live = await _ask_who_begins(settings.home, request, show_progress)
    if live is not None:
        return live
    if request.command in control.NEED_GATEWAY:
        return control.ControlAnswer(text=control.NOT_RUNNING, ok=False)
    with lock.hold(settings.home):
        try:
            store = await assembly.open_store(settings)
        except StoreFailed as error:
            return control.ControlAnswer(text=str(error), ok=False)
        try:
            trail = make_trail(settings, store)
            pairing = assembly.make_pairing_alone(settings, store, trail.note)
            console = console_alone(settings, store) if request.command == "jobs" else None
            upkeep = StoreUpkeep(settings, store, trail)
            asked = control.Operations(
                store=store, pairing=pairing, jobs=console, upkeep=upkeep, trail=trail
            )
            return await asked.answer(request, show_progress)
        finally:
            await store.close()
