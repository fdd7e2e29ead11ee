"""Answers of the command line while no gateway runs: from the store, under the folder's lock."""

from collections.abc import Callable

from gateway.errors import StoreFailed
from gateway.ops import control, lock
from gateway.ops.stored_contents import make_trail
from gateway.ops.upkeep import StoreUpkeep
from gateway.settings import Settings
from gateway.wiring import assembly
from gateway.wiring.jobs import console_alone


async def answer_offline(
    settings: Settings, question: control.Question, show_progress: Callable[[str], None]
) -> control.ControlAnswer:
    """Answer what needs no running gateway."""
    if question.command in control.NEED_GATEWAY:
        return control.ControlAnswer(text=control.NOT_RUNNING, ok=False)
    with lock.hold(settings.home):
        try:
            store = await assembly.open_store(settings)
        except StoreFailed as error:
            return control.ControlAnswer(text=str(error), ok=False)
        try:
            trail = make_trail(settings, store)
            pairing = assembly.make_pairing_alone(settings, store, trail.note)
            console = console_alone(settings, store) if question.command == "jobs" else None
            upkeep = StoreUpkeep(settings, store, trail)
            asked = control.Operations(
                store=store, pairing=pairing, jobs=console, upkeep=upkeep, trail=trail
            )
            return await asked.answer(question, show_progress)
        finally:
            await store.close()
