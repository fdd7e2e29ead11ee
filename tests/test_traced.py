"""How many of the product's modules one request passes through, traced."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from agent_core import ambient
from tests.fakes.model_server import Say
from tests.stories.jobs_rig import DAY, Shifted, fire, make
from tests.stories.rig import PERSON, Rig, write

ROOT = Path(__file__).parents[1]
PACKAGES = tuple(f"{ROOT}/{name}/" for name in ("agent_core", "gateway", "adapters", "cron"))
MOST = {"a text": 112, "a press": 121, "a job": 128}
"""Modules that a Telegram text, a press on an approval, and a job to its report may enter."""
SPARE = 5
"""Modules more that a slow machine lets in: a lease renewed, a status shown anew."""


@contextmanager
def traced(request: str) -> Iterator[None]:
    """Fails if what runs within the block enters more modules than the request may."""
    entered: set[str] = set()

    def look(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(PACKAGES) and frame.f_code.co_name != "<module>":
            entered.add(name.removeprefix(f"{ROOT}/"))

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert len(entered) <= MOST[request] + SPARE, sorted(entered)


async def test_a_text(rig: Rig) -> None:
    await rig.start()
    rig.model.script(Say("warm"), Say("hello back"))
    rig.telegram.say(PERSON, "warm up")
    await rig.shows("warm")
    await rig.quiet()
    with traced("a text"):
        rig.telegram.say(PERSON, "hello")
        await rig.shows("hello back")
        await rig.quiet()


async def test_a_press(rig: Rig) -> None:
    await rig.start()
    rig.model.script(write("a.txt"), Say("written"), write("b.txt"), Say("again"))
    for n, said in enumerate(("written", "again")):
        rig.telegram.say(PERSON, "write it")
        card = await rig.card()
        await rig.quiet()
        if not n:
            rig.press(card, "Approve once")
            await rig.shows(said)
            await rig.quiet()
    with traced("a press"):
        rig.press(card, "Approve once")
        await rig.shows("again")
        await rig.quiet()


async def test_a_job(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Shifted()
    ambient.use(clock)
    try:
        await rig.start()
        await make(rig)
        rig.model.script(Say("Two are open."), Say("Three are open."))
        await fire(rig, clock)
        await rig.shows("Two are open.")
        await rig.quiet()
        clock.offset += DAY
        with traced("a job"):
            await fire(rig, clock)
            await rig.shows("Three are open.")
            await rig.quiet()
    finally:
        ambient.use(ambient.SystemClock())
