"""The same stories in Telegram and at the page. What a person sees is a golden text; it is the same
when the gateway is killed at any of the story's resting points.

`GOLDENS=write pytest tests/stories/test_both_surfaces.py` writes them anew, for people to read.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.stories import agent_stories as agent_stories
from tests.stories import sandbox_stories as sandbox_stories
from tests.stories.rig import living, quick
from tests.stories.surfaces.chat_stories import NOT_APPLICABLE, SURFACES
from tests.stories.surfaces.story import STORIES
from tests.stories.surfaces.surface import GOLDENS, compare, told_by_bot, without_notes

AT_THE_PAGE = {"form": ["☑ Ann: Monday"], "server_asks": ["☑ Ann: Ulm", "☑ Ann: 3"]}
"""What only the page's cards say: in Telegram the answer stands there as a message, and the form,
which asks for a reply, cannot be edited."""

WENT_WELL = re.compile(r"^((?:bot: |    )☑ .*\n)(?: {6}.*\n)+", re.MULTILINE)
"""A tool line that went well, with what it gave: Discord cannot fold that, and shows it no longer
once the answer stands."""
FOLDED = {("limits", "discord"): ["Nothing found."]}
"""(story, surface) -> what is not shown there: of a turn without an answer, the newest outputs
only."""

BESIDE_MARK = re.compile(r"^(\s*)• (?=[–✕◐] )")
"""In Telegram a step that bears a mark has no box but the bullet of a list."""
KILLED = 12
"""Kills of a quick run."""

FLAWS: dict[tuple[str, str, str], str] = {}
"""(story, surface, rest) -> what is not as the golden says yet; an entry too many fails."""


# ---- plans ------------------------------------------------------------------------------------


# ---- asking, tools, questions ----------------------------------------------------------------


# ---- messages during a turn ------------------------------------------------------------------


# ---- who and what comes ----------------------------------------------------------------------


# ---- telling them ----------------------------------------------------------------------------


def told() -> list[tuple[str, str]]:
    return [
        (name, surface)
        for name in STORIES
        for surface in SURFACES
        if (name, surface) not in NOT_APPLICABLE
    ]


def runs(*, killed: bool) -> list[Any]:
    """Each story wherever it can be told; once, or killed at each of its rests. A quick run takes
    each story once, and KILLED kills, where the seed says."""
    found = []
    for name, on in told():
        for rest in STORIES[name].rests if killed else ("",):
            flaw = FLAWS.get((name, on, rest))
            marks = [pytest.mark.xfail(strict=True, reason=flaw)] if flaw else []
            marks += STORIES[name].needs
            if not killed:
                marks.append(pytest.mark.pick(f"told {name}"))
            elif STORIES[name].long:
                marks.append(pytest.mark.slow)
            else:
                marks.append(pytest.mark.pick("killed on the way", KILLED))
            label = "-".join(filter(None, [name, on, rest.replace(" ", "_")]))
            values = (name, on, rest) if killed else (name, on)
            found.append(pytest.param(*values, id=label, marks=marks))
    return found


async def tell(name: str, on: str, folder: Path, crash_at: str = "") -> str:
    """The transcript of the story."""
    told = STORIES[name]
    async with living(folder) as rig:
        surface = SURFACES[on](rig, told.language, crash_at)
        async with told.beside(surface) as found:
            surface.beside = found
            await surface.open(**told.settings | found)
            try:
                await told.tell(surface)
                text = await surface.transcript()
            finally:
                await surface.close()
        assert tuple(surface.rests) == told.rests
        logs = [path.read_text() for path in rig.home.glob("workspaces/*/effects.txt")]
        assert sum(log.count("\n") for log in logs) == told.effects, logs
    return text


@pytest.mark.parametrize(("name", "on"), runs(killed=False))
async def test_a_story(name: str, on: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    text = await tell(name, on, tmp_path)
    compare(f"{name}.{on}", text, write=(name, on, "") not in FLAWS)


@pytest.mark.parametrize(("name", "on", "rest"), runs(killed=True))
async def test_killed_on_the_way(
    name: str, on: str, rest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    text = await tell(name, on, tmp_path, crash_at=rest)
    if rest == STORIES[name].labelled:
        text = without_notes(text)
    if rest == STORIES[name].differs:
        return compare(f"{name}.{on}.{rest.replace(' ', '_')}", text)
    return compare(f"{name}.{on}", text, write=False)


def test_each_story_is_told_wherever_it_can_be() -> None:
    assert set(NOT_APPLICABLE) <= {(name, surface) for name in STORIES for surface in SURFACES}
    expected = {f"{name}.{surface}.txt" for name, surface in told()} | {
        f"{name}.{surface}.{rest.replace(' ', '_')}.txt"
        for name, surface in told()
        if (rest := STORIES[name].differs)
    }
    kept = {path.name for on in SURFACES for path in GOLDENS.glob(f"*.{on}.*txt")}
    assert kept == expected, "goldens of no story, or none"


OWN_QUOTE = re.compile(r"> You:\n(?: {4}.*\n)+? {4}(?=\[)")
"""What of its own words a reply quotes to the bot; in a thread of Slack and at the page nobody
replies."""


CUT = ("long_answer", "at_length", "preview_")
"""In the names of stories with long messages, or long commands: each surface cuts them elsewhere."""


@pytest.mark.parametrize("name", [one for one in STORIES if not any(cut in one for cut in CUT)])
def test_both_surfaces_tell_the_same(name: str) -> None:
    """Of a long answer the goldens show the edges of each message, which differ."""
    shown = {
        surface: OWN_QUOTE.sub("", (GOLDENS / f"{name}.{surface}.txt").read_text())
        for surface in SURFACES
        if (name, surface) not in NOT_APPLICABLE
    }
    first = next(iter(shown.values()))
    for surface, other in shown.items():
        hidden = [*AT_THE_PAGE.get(name, ()), *FOLDED.get((name, surface), ())]
        here = WENT_WELL.sub(r"\1", first) if surface == "discord" else first
        assert _without(hidden, here) == _without(hidden, other)
        assert heard(first) == heard(other)


def _without(hidden: list[str], golden: str) -> list[str]:
    told = (BESIDE_MARK.sub(r"\1", line) for line in told_by_bot(golden))
    return [line for line in told if line not in hidden]


def heard(golden: str) -> str:
    """What the model heard; how the bot was named for it, Telegram's messages say. It was told as
    an answer, in which a list is drawn as one."""
    told = golden.partition("heard --")[2].replace("@test_bot ", "")
    return re.sub(r"^( +)(?:• |- )", r"\1", told, flags=re.MULTILINE)
