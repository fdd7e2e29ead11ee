"""`/memory forget` offers what is remembered as buttons; what is pressed is forgotten, once, whenever
the gateway dies, and the list becomes the word that says so."""

from functools import partial
from pathlib import Path

import pytest

from tests.fakes.model_server import Calls, Say
from tests.sampling import some_and_every
from tests.stories.dying_rig import Death, do_over, kill_at_points, settle, tell_dying
from tests.stories.memory_rig import FALCON, TEA, memory
from tests.stories.rig import Rig, quick
from tests.stories.surfaces import Discord, Slack, Surface, Telegram, Web

BOTH = Calls([memory("add", TEA, "user"), memory("add", FALCON)])
OFFERED = "Which entry?"


async def remember(person: Surface) -> None:
    person.answers(thirsty=[BOTH, Say("Noted.")])
    await person.say("I am thirsty")
    await person.shows("Noted.")
    await person.rig.quiet()


def count(person: Surface, text: str) -> int:
    return sum(text in one for one in person.screen())


@pytest.mark.pick("memory is forgotten by a button")
@pytest.mark.parametrize("kind", [Telegram, Web, Discord, Slack])
async def test_what_is_pressed_is_forgotten(
    kind: type[Surface], rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    person = kind(rig)
    await person.open()
    try:
        await person.command("/memory forget")
        await person.shows("Nothing is remembered")
        await remember(person)
        await person.command("/memory forget the")
        await person.shows(f"Forgotten: {FALCON}")
        await person.command("/memory forget")
        await person.shows(OFFERED)
        await rig.quiet()
        await person.press(f"1. {TEA}")
        await person.shows(f"Forgotten: {TEA}")
        await rig.quiet()
        assert not count(person, OFFERED), "the list has become the word"
    finally:
        await person.close()


async def _tell(person: Surface, death: Death) -> None:
    await remember(person)
    death.armed = True
    await do_over(person, death, lambda: person.command("/memory forget"))
    await person.shows(OFFERED)
    await settle(person.rig, death)
    await do_over(person, death, lambda: person.press(f"2. {TEA}"))
    await person.rig.until(lambda: count(person, "Forgotten:") + count(person, "Already done."))
    await settle(person.rig, death)
    death.armed = False
    await person.command("/memory")
    await person.shows("What I know about the work")
    await settle(person.rig)
    shown = next(one for one in person.screen() if "What I know about the work" in one)
    assert FALCON in shown and TEA not in shown
    assert count(person, OFFERED) <= bool(death.at), "a copy whose send was cut off stays"
    told = [one for one in person.screen() if "Forgotten:" in one or "Already done." in one]
    assert sum("Possibly sent twice" not in one for one in told) <= 1 <= len(told) <= 2, told


@pytest.mark.timeout(600)
@some_and_every(2, "/memory forget is killed")
@pytest.mark.parametrize("kind", [Telegram, Web, Discord, Slack])
async def test_killed_at_every_commit_of_it(
    kind: type[Surface], tmp_path: Path, some: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    await kill_at_points(
        partial(tell_dying, kind, story=_tell), tmp_path, some, 6, "memory forgotten", kind.name
    )
