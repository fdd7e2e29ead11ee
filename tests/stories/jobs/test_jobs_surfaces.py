"""Jobs on every surface, in two long stories: what a person sees of them is a golden text, and the
same when the gateway is killed while all waits.

`GOLDENS=write pytest tests/stories/jobs/test_jobs_surfaces.py` writes them anew, for people to read.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_core import ambient
from agent_core.ambient import SystemClock
from tests.stories.jobs_rig import (
    Shifted,
)
from tests.stories.rig import living, quick
from tests.stories.surfaces import Discord, Slack, Surface, Telegram, Web, surface
from tests.stories.surfaces.jobs_stories import MONDAY, STORIES
from tests.stories.surfaces.surface import GOLDENS, compare, told_by_bot

SURFACES: dict[str, type[Surface]] = {
    "telegram": Telegram, "web": Web, "discord": Discord, "slack": Slack,
}  # fmt: skip
NOW = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")
"""When something was pressed; all other times are those of jobs."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shifted]:
    monkeypatch.setattr(surface, "TIME", NOW)
    quick(monkeypatch)
    shifted = Shifted()
    shifted.offset = MONDAY - time.time()  # noqa: TID251  # a clock
    ambient.use(shifted)
    yield shifted
    ambient.use(SystemClock())


# ---- what stories are made of ------------------------------------------------------------------


# ---- stories -----------------------------------------------------------------------------------


# ---- telling them ------------------------------------------------------------------------------


def told(*, killed: bool) -> list[Any]:
    """Each story on each surface; once, or killed at each of its rests."""
    return [
        pytest.param(
            *(name, on, rest),
            id=f"{name}-{on}-{rest.replace(' ', '_')}".rstrip("-"),
            marks=pytest.mark.pick(f"{'killed' if killed else 'told'} {name}"),
        )
        for name, one in STORIES.items()
        for on in SURFACES
        for rest in (one.rests if killed else ("",))
    ]


async def tell(name: str, on: str, folder: Path, clock: Shifted, crash_at: str = "") -> str:
    """The transcript of the story."""
    async with living(folder) as rig:
        person = SURFACES[on](rig, crash_at=crash_at)
        await person.open()
        try:
            await STORIES[name].tell(person, clock)
            text = await person.transcript()
        finally:
            await person.close()
        assert tuple(person.rests) == STORIES[name].rests
    return text


@pytest.mark.parametrize(("name", "on", "rest"), told(killed=False))
async def test_a_story_of_jobs(
    name: str, on: str, rest: str, tmp_path: Path, clock: Shifted
) -> None:
    compare(f"jobs/{name}.{on}", await tell(name, on, tmp_path, clock, rest))


@pytest.mark.parametrize(("name", "on", "rest"), told(killed=True))
async def test_killed_while_all_waits(
    name: str, on: str, rest: str, tmp_path: Path, clock: Shifted
) -> None:
    compare(f"jobs/{name}.{on}", await tell(name, on, tmp_path, clock, rest), write=False)


OWN_QUOTE = re.compile(r"> You:\n(?: {4}.*\n)+? {4}(?=Which one)")
"""What of its own words a reply quotes to the bot; in a thread of Slack and at the page nobody
replies."""


@pytest.mark.parametrize("name", STORIES)
def test_all_surfaces_tell_the_same_of_jobs(name: str) -> None:
    goldens = [(GOLDENS / f"jobs/{name}.{on}.txt").read_text() for on in SURFACES]
    first, *others = [OWN_QUOTE.sub("", golden) for golden in goldens]
    for other in others:
        assert words_of(other) == words_of(first)
        assert heard(other) == heard(first)


WHEN = re.compile(r"<time>|\d{4}-\d\d-\d\d \d\d:\d\d(?: Europe/Berlin| UTC)?")


def words_of(golden: str) -> list[str]:
    """Without buttons, which stand beside each other in other ways, and without the numbers of a
    list, which a browser counts."""
    golden = WHEN.sub("<when>", golden)  # Discord has each reader's own time
    lines = (line for line in told_by_bot(golden) if not line.startswith("["))
    return [re.sub(r"^\d\. ", "", line) for line in lines]


def heard(golden: str) -> str:
    return golden.partition("heard --")[2]
