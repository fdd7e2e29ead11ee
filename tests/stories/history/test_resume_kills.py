"""`/resume` and a press on its list, killed before and after each commit, as a person on each
surface has it: the conversation goes on from what was chosen, once, and from nothing else."""

from functools import partial
from pathlib import Path

import pytest

from tests.fakes.model_server import Say
from tests.sampling import some_and_every
from tests.stories.dying_rig import Death, do_over, kill_at_points, settle, tell_dying
from tests.stories.rig import quick
from tests.stories.surfaces import Discord, Slack, Surface, Telegram, Web
from tests.stories.surfaces.mind import RECAP

GOES_ON = "Continuing from 'plan the garden'"
LABEL = "1. plan the garden"
LISTED = "Found in earlier"
TWICE = "Possibly sent twice"


async def _tell(person: Surface, death: Death) -> None:
    person.answers(garden=[Say("tulips and a pond")], bike=[Say("the chain is loose")])
    for words, answer in (("plan the garden", "tulips"), ("fix the bike", "the chain is loose")):
        await person.say(words)
        await person.shows(answer)
        await person.rig.quiet()
        await person.command("/new")
        await person.shows("New conversation")
        await person.rig.quiet()
    death.armed = True
    await do_over(person, death, lambda: person.command("/resume pond"))
    await person.shows(LISTED)
    await settle(person.rig, death)
    await do_over(person, death, lambda: person.press(LABEL))
    await person.shows(GOES_ON)
    await settle(person.rig, death)
    death.armed = False
    await person.say(RECAP)
    await person.shows("You said:")
    await settle(person.rig)
    screen = person.screen()
    (recap,) = [one for one in screen if "You said:" in one]
    assert recap.endswith("You said: plan the garden"), recap
    words = [one for one in screen if GOES_ON in one]
    assert sum(TWICE not in one for one in words) <= 1 <= len(words) <= 2, words
    lists = [one for one in screen if LISTED in one]
    assert sum(TWICE not in one for one in lists) <= 1 and len(lists) <= 1, lists
    await settle(person.rig, death)


@pytest.mark.timeout(600)
@some_and_every(2, "kills on a surface")
@pytest.mark.parametrize("kind", [Telegram, Web, Discord, Slack])
async def test_killed_at_every_commit_of_a_resume(
    kind: type[Surface], tmp_path: Path, some: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    await kill_at_points(
        partial(tell_dying, kind, story=_tell), tmp_path, some, 6, "resume kills", kind.name
    )
