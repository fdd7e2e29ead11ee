"""How many of the product's modules one request passes through, traced."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from types import FrameType

import pytest

from agent_core import ambient
from gateway.ops import store_identity
from gateway.store.sqlite_threads import Reader
from tests.fakes.model_server import Say
from tests.stories.jobs_rig import DAY, Shifted, fire, make
from tests.stories.rig import PERSON, Rig, write

ROOT = Path(__file__).parents[1]
PACKAGES = tuple(f"{ROOT}/{name}/" for name in ("agent_core", "gateway", "adapters", "cron"))
MOST = {"a text": 123, "a press": 134, "a job": 141}
"""Modules that a Telegram text, a press on an approval, and a job to its report may enter."""
TIMES = 3
"""How often each is asked for. What runs beside it by the clock (a lease renewed, a status shown
anew, an old file removed) enters modules of its own in some of these runs on a slow machine; what
the request itself passes through is what every run entered."""


@contextmanager
def traced(runs: list[set[str]]) -> Iterator[None]:
    """Adds to ``runs`` the modules that are entered within the block."""
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
    runs.append(entered)


def assert_few(request: str, runs: list[set[str]]) -> None:
    """Fails if every one of the runs of a request entered more modules than it may."""
    always = set.intersection(*runs)
    assert len(runs) == TIMES
    assert len(always) <= MOST[request], "\n".join(sorted(always))


async def test_a_text(rig: Rig) -> None:
    await rig.start()
    rig.model.script(Say("warm"), *(Say(f"hello {n}") for n in range(TIMES)))
    rig.telegram.say(PERSON, "warm up")
    await rig.shows("warm")
    await rig.quiet()
    runs: list[set[str]] = []
    for n in range(TIMES):
        with traced(runs):
            rig.telegram.say(PERSON, "hello")
            await rig.shows(f"hello {n}")
            await rig.quiet()
    assert_few("a text", runs)


async def test_a_text_waits_for_no_reading_of_the_store(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What each message needs is at hand; reading it takes a thread, and longer than a commit."""
    monkeypatch.setattr(store_identity, "EVERY", 3_600.0)  # looks at the store by the clock
    await rig.start()
    rig.model.script(Say("warm"), Say("hello"))
    rig.telegram.say(PERSON, "warm up")
    await rig.shows("warm")
    await rig.quiet()
    read: list[object] = []
    plain = Reader.run_here

    def note(reader: Reader, work: Callable[[Connection], object]) -> object:
        read.append([cell.cell_contents for cell in work.__closure__ or ()])
        return plain(reader, work)

    monkeypatch.setattr(Reader, "run_here", note)
    rig.telegram.say(PERSON, "hello")
    await rig.shows("hello")
    assert read == []


async def test_a_press(rig: Rig) -> None:
    await rig.start()
    for n in range(TIMES + 1):
        rig.model.script(write(f"{n}.txt"), Say(f"written {n}"))
    runs: list[set[str]] = []
    for n in range(TIMES + 1):
        rig.telegram.say(PERSON, "write it")
        card = await rig.card()
        await rig.quiet()
        if not n:
            rig.press(card, "Approve once")
            await rig.shows(f"written {n}")
            await rig.quiet()
            continue
        with traced(runs):
            rig.press(card, "Approve once")
            await rig.shows(f"written {n}")
            await rig.quiet()
    assert_few("a press", runs)


def has_ended(rig: Rig, count: int) -> bool:
    """So many runs of jobs were put down."""
    return len(rig.log.named("run_ended")) == count


async def test_a_job(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Shifted()
    ambient.use(clock)
    try:
        await rig.start()
        await make(rig)
        rig.model.script(*(Say(f"{n} are open.") for n in range(TIMES + 1)))
        await fire(rig, clock)
        await rig.shows("0 are open.")
        await rig.until(partial(has_ended, rig, 1))
        await rig.quiet()
        runs: list[set[str]] = []
        for n in range(TIMES):
            clock.offset += DAY
            with traced(runs):
                await fire(rig, clock)
                await rig.shows(f"{n + 1} are open.")
                await rig.quiet()
            # It is put down after the report: the next run is not to pass through that.
            await rig.until(partial(has_ended, rig, n + 2))
        assert_few("a job", runs)
    finally:
        ambient.use(ambient.SystemClock())
