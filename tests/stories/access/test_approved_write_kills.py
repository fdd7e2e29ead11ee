"""An approved `write_file`, killed before and after each commit from the press on, as a person on each
surface has it: the file is written once, what it was is kept once, and nobody is asked twice."""

from functools import partial
from pathlib import Path

import pytest

from tests.fakes.model_server import Say
from tests.sampling import some_and_every
from tests.stories.dying_rig import Death, do_over, kill_at_points, settle, tell_dying
from tests.stories.rig import quick, write
from tests.stories.surfaces import Discord, Slack, Surface, Telegram, Web

BEGUN, DONE = "the file is begun", "the file is done"
OLD, NEW = "what it was", "what it is"
DECIDED = "Approved once by"
TWICE = "Possibly sent twice"


async def tell(kind: type[Surface], folder: Path, at: int) -> Death:
    death = await tell_dying(kind, folder, at, _tell)
    check(folder)
    return death


async def _tell(person: Surface, death: Death) -> None:
    person.answers(begin=[write("a.txt", OLD), Say(BEGUN)], finish=[write("a.txt", NEW), Say(DONE)])
    await person.say("begin it")
    await person.shows(BEGUN)
    await person.rig.quiet()
    await person.command("/mode ask")
    await person.rig.quiet()
    await person.say("finish it")
    await person.card(NEW)
    await person.rig.quiet()
    death.armed = True
    await do_over(person, death, lambda: person.press("Approve once"))
    await person.shows(DONE)
    await settle(person.rig, death)
    death.armed = False
    screen = person.screen()
    decided = [one for one in screen if DECIDED in one and TWICE not in one]
    assert len(decided) <= 1, decided
    assert not [one for one in screen if "it was approved" in one], screen


def check(folder: Path) -> None:
    """What the file is, and what of it can be taken back."""
    (place,) = (one for one in folder.rglob("a.txt") if one.is_file())
    assert place.read_text() == NEW
    kept = [one.read_text() for one in folder.rglob("a.txt.*") if not one.name.endswith(".new")]
    assert kept.count(OLD) == 1 and NEW not in kept, kept


@pytest.mark.timeout(600)
@some_and_every(2, "kills on a surface")
@pytest.mark.parametrize("kind", [Telegram, Web, Discord, Slack])
async def test_killed_at_every_commit_of_an_approved_write(
    kind: type[Surface], tmp_path: Path, some: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    await kill_at_points(partial(tell, kind), tmp_path, some, 4, "write kills", kind.name)
