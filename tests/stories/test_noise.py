"""What a turn asks of people's attention: messages, rings, presses, and how soon anything shows.

The tables in docs/attention.md are what is measured here; `GOLDENS=write` writes them anew.
"""

import os
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec import Struct

from tests.fakes.discord_server import DiscordServer
from tests.fakes.model_server import Call, Say
from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.slack_server import SlackServer
from tests.fakes.telegram_server import TelegramServer
from tests.stories.jobs_rig import schedule
from tests.stories.plan_rig import ASK
from tests.stories.rig import living, quick
from tests.stories.surfaces import Discord, Held, Slack, Surface, Telegram, Web
from tests.stories.surfaces.chat_stories import PLANNED, SURFACES, ask, run

TABLE = Path(__file__).parents[2] / "docs/attention.md"
SIGN = "## The first sign"
LESS = "## Degradation by platform"
SUPPRESSED = 1 << 12
SIGNS = {
    "sendChatAction": "typing", "sendMessageDraft": "draft", "sendRichMessageDraft": "draft",
    "type": "typing", "reactions.add": "👀", "agents.sessions.setStatus": "status",
    "assistant.threads.setStatus": "status",
}  # fmt: skip
"""Calls of platforms that show a sign, and what people see."""
FIRST_SIGN = 1.0
"""Seconds to it, at most."""
LISTS = [Call("list_files", f'{{"pattern": "*.{ending}"}}') for ending in ("md", "py", "txt")]

Tell = Callable[[Surface], Awaitable[None]]


class Noise(Struct, frozen=True):
    """Of one turn: messages that were sent, those of them that ring, presses that it took."""

    messages: int
    rings: int
    presses: int

    def __str__(self) -> str:
        return f"{self.messages} / {self.rings} / {self.presses}"


async def an_answer(s: Surface) -> None:
    s.answers(hello=[Say("Good day.")])
    await s.say("hello")
    await s.shows("Good day.")


async def tools_that_need_no_word(s: Surface) -> None:
    s.answers(look=[*LISTS, Say("Nothing there.")])
    await s.say("look")
    await s.shows("Nothing there.")


async def a_change_that_is_approved(s: Surface) -> None:
    s.answers(Keep=[run(), Say("It is written.")])
    await s.say("Keep it")
    await s.card("effects.txt")
    await s.press("Approve once")
    await s.shows("It is written.")


async def a_question_with_choices(s: Surface) -> None:
    s.answers(Book=[ask("Which way?", "Train", "Plane"), Say("By plane.")])
    await s.say("Book it")
    await s.card("Which way?")
    await s.press("Plane")
    await s.shows("By plane.")


async def a_plan_of_three_steps(s: Surface) -> None:
    s.answers(**PLANNED)
    await s.say(ASK)
    await s.shows("There you are.")


async def a_job_that_is_made(s: Surface) -> None:
    s.answers(Every=[schedule(), Say("It stands.")])
    await s.say("Every day at 9")
    await s.card("New job")
    await s.press("Confirm")
    await s.shows("It stands.")


async def commands_that_change_files(s: Surface) -> None:
    call = Call("run_command", '{"command": "echo one > a.txt"}')
    s.answers(Work=[call, Say("Worked.")])
    await s.say("Work")
    await s.shows("Worked.")
    await s.shows("Changed files: a.txt.")


TURNS: dict[str, tuple[Tell, int, int]] = {
    "an answer": (an_answer, 1, 0),
    "an answer after three tools": (tools_that_need_no_word, 2, 0),
    "a change that is approved": (a_change_that_is_approved, 3, 1),
    "a question with choices": (a_question_with_choices, 3, 1),
    "a job that is made": (a_job_that_is_made, 2, 1),
    "a plan of three steps": (a_plan_of_three_steps, 2, 0),
}
"""What is told -> how, the most messages, and the presses that it takes. Rings: one for what waits
for an answer, one for the answer."""
CONTAINED = {"commands that change files": (commands_that_change_files, 2, 0)}
"""The same where a sandbox contains commands."""


def count(s: Surface, presses: int) -> Noise:
    match s:
        case Telegram():
            calls = [
                one
                for one in s.rig.telegram.calls
                if one.method.startswith("send") and one.method not in SIGNS and one.status == 200
            ]
            loud = [one for one in calls if not one.params.get("disable_notification")]
        case Discord():
            calls = s.server.made("send")
            loud = [one for one in calls if not one.params.get("flags", 0) & SUPPRESSED]
        case Slack():
            posted = ("chat.postMessage", "chat.startStream", "files.completeUploadExternal")
            calls = loud = [one for name in posted for one in s.slack.made(name)]
        case _:
            shown = [one for one in s.screen() if one.startswith("bot:")]
            return Noise(len(shown), 0, presses)
    return Noise(len(calls), len(loud), presses)


def server_of(s: Surface) -> TelegramServer | DiscordServer | SlackServer:
    match s:
        case Discord():
            return s.server
        case Slack():
            return s.slack
        case _:
            return s.rig.telegram


async def tell(on: str, told: str, folder: Path, **settings: str) -> Noise:
    tell_it, _, presses = (TURNS | CONTAINED)[told]
    async with living(folder) as rig:
        surface = SURFACES[on](rig)
        await surface.open(**settings)
        try:
            await tell_it(surface)
            await surface.settle()
            return count(surface, presses)
        finally:
            await surface.close()


def read_table() -> dict[tuple[str, str], str]:
    return read_rows(TABLE.read_text().partition(SIGN)[0])


def read_rows(told: str) -> dict[tuple[str, str], str]:
    """By what a line tells, and the platform."""
    rows = [line.strip("| ").split(" | ") for line in told.splitlines() if "|" in line]
    names = rows[0][1:]
    return {
        (row[0], name): cell for row in rows[2:] for name, cell in zip(names, row[1:], strict=True)
    }


@pytest.mark.parametrize(
    "on", [pytest.param(on, marks=pytest.mark.pick("noise")) for on in SURFACES]
)
async def test_a_turn_is_as_loud_as_the_table_says(
    on: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    for told in TURNS:
        (folder := tmp_path / told.replace(" ", "-")).mkdir()
        hold_to_table(on, told, await tell(on, told, folder))


@NEEDS_BWRAP
@pytest.mark.parametrize(
    "on", [pytest.param(on, marks=pytest.mark.pick("contained")) for on in SURFACES]
)
async def test_so_it_is_where_commands_are_contained(
    on: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    for told in CONTAINED:
        hold_to_table(on, told, await tell(on, told, tmp_path, SANDBOX_PROVIDER="bwrap"))


def hold_to_table(on: str, told: str, noise: Noise) -> None:
    _, messages, presses = (TURNS | CONTAINED)[told]
    assert noise.messages <= messages and noise.rings <= 1 + presses or on == "slack", (told, noise)
    if os.environ.get("GOLDENS") == "write":
        line = next(one for one in TABLE.read_text().splitlines() if one.startswith(f"| {told} |"))
        cells = line.strip("| ").split(" | ")
        cells[1 + list(SURFACES).index(on)] = str(noise)
        TABLE.write_text(TABLE.read_text().replace(line, f"| {' | '.join(cells)} |"))
    assert read_table()[told, on] == str(noise)


def list_signs(server: TelegramServer | DiscordServer | SlackServer) -> list[str]:
    made = [getattr(one, "method", "") or getattr(one, "name", "") for one in server.calls]
    return [SIGNS[one] for one in made if one in SIGNS]


def read_signs() -> dict[tuple[str, str], str]:
    return read_rows(TABLE.read_text().partition(SIGN)[2].partition(LESS)[0])


def hold_to_seconds(on: str, seconds: float) -> None:
    """It came in time; a busy machine is slower than the table."""
    if os.environ.get("GOLDENS") == "write":
        text = TABLE.read_text()
        line = next(one for one in text.splitlines() if one.startswith("| seconds |"))
        cells = line.strip("| ").split(" | ")
        cells[1 + list(SURFACES).index(on)] = f"{seconds + 0.05:.1f}"
        TABLE.write_text(text.replace(line, f"| {' | '.join(cells)} |"))
    assert seconds < FIRST_SIGN and float(read_signs()["seconds", on]) < FIRST_SIGN


@pytest.mark.parametrize(
    "on",
    [pytest.param(on, marks=pytest.mark.pick("sign")) for on in ("telegram", "discord", "slack")],
)
async def test_the_first_sign_comes_before_the_model_answers(on: str, tmp_path: Path) -> None:
    await meet_first_sign(on, tmp_path)


@pytest.mark.timing
@pytest.mark.slow
@pytest.mark.parametrize("on", SURFACES)
async def test_the_first_sign_comes_within_a_second(on: str, tmp_path: Path) -> None:
    page = on == "web"
    took = await (meet_sign_of_page(tmp_path) if page else meet_first_sign(on, tmp_path))
    hold_to_seconds(on, took)


async def meet_first_sign(on: str, tmp_path: Path) -> float:
    """Seconds from what a person says to the first sign, while the model is held."""
    async with living(tmp_path) as rig:
        surface = SURFACES[on](rig)
        await surface.open()
        try:
            surface.answers(hello=[Held(Say("Good day."))])
            server = server_of(surface)
            server.calls.clear()
            began = time.monotonic()
            await surface.say("hello")
            await server.wait(lambda: list_signs(server))
            took = time.monotonic() - began
            assert list_signs(server)[0] == read_signs()["what", on]
            await surface.thinks()
            surface.mind.let_go()
            await surface.shows("Good day.")
            await surface.settle()
        finally:
            await surface.close()
    return took


@pytest.mark.pick("sign")
async def test_the_page_says_that_it_works_before_the_model_does(tmp_path: Path) -> None:
    await meet_sign_of_page(tmp_path)
    assert read_signs()["what", "web"] == "at work"


async def meet_sign_of_page(tmp_path: Path) -> float:
    """As `meet_first_sign`."""
    async with living(tmp_path) as rig:
        page = Web(rig)
        await page.open()
        try:
            page.answers(hello=[Held(Say("Good day."))])
            began = time.monotonic()
            await page.say("hello")
            await page._wait(lambda: page._standing["state"] == "running")
            took = time.monotonic() - began
            await page.thinks()
            assert not [one for one in page.screen() if one.startswith("bot:")]
            page.mind.let_go()
            await page.shows("Good day.")
            await page._wait(lambda: page._standing["state"] == "idle")
        finally:
            await page.close()
    return took


def test_each_ability_that_may_be_missing_has_a_test() -> None:
    rows = [one for one in TABLE.read_text().partition(LESS)[2].splitlines() if "|" in one][2:]
    assert len(rows) > 15
    folder, file = Path(__file__).parents[2], ""
    for row in rows:
        *_, named = row.strip("| ").split(" | ")
        told = re.findall(r"`([\w/]+)(\.py)?`", named)
        assert told, row
        for name, ending in told:
            if ending:
                file = str(folder / f"{name}.py")
                assert Path(file).exists(), name
            else:
                assert f"def {name}(" in Path(file).read_text(), name
