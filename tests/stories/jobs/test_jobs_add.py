"""Jobs by one line: `/jobs add` in a chat, `turnkeeper jobs add` on the command line."""

import asyncio
import tomllib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from agent_core import ambient
from gateway.cli.main import main
from gateway.services.vault import Vault
from tests.fakes.model_server import Say
from tests.stories.jobs_rig import Shifted, fire, jobs_of, only
from tests.stories.rig import ADMIN, PERSON, Rig, labels

AFTERNOON = datetime(2027, 3, 3, 14, 5, 30, tzinfo=UTC).timestamp()
"""A Wednesday."""


@pytest.fixture
async def rig(clock: Shifted, rig: Rig) -> Rig:
    clock.offset = AFTERNOON - ambient.now()
    return rig


@pytest.mark.parametrize(
    ("said", "schedule", "prompt", "title"),
    [
        ("tomorrow at 9:30: water the plants", "at 2027-03-04T09:30:00", "water the plants", ""),
        ("every 2h: look at https://a.b: is it up?", "every 7200s", "look at https://a.b: is it up?", ""),
        ("30 8 * * 1-5\nSay what is new.\nBriefly.", "30 8 * * 1-5", "Say what is new.\nBriefly.",
         "Say what is new. Briefly."),
        ("@daily: " + "count them all " * 9, "0 0 * * *", ("count them all " * 9).strip(),
         "count them all count them all count them all count them all…"),
    ],
)  # fmt: skip
async def test_when_and_what_make_a_job(
    rig: Rig, said: str, schedule: str, prompt: str, title: str
) -> None:
    await rig.start()
    rig.telegram.say(PERSON, f"/jobs add {said}")
    shown = await rig.shows("Next: 2027-03-0")
    job = await only(rig)
    assert job.schedule.startswith(schedule) and job.prompt == prompt
    assert job.title == (title or prompt) and job.title in shown["text"]
    assert "/timezone" in shown["text"], "the zone was guessed"
    assert labels(shown)[:2] == ["Run now", "Pause"]
    assert rig.model.requests == []


async def test_it_runs_and_its_card_is_one_of_the_list(rig: Rig, clock: Shifted) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "/timezone Europe/Berlin")
    await rig.shows("Your time zone is now Europe/Berlin")
    rig.telegram.say(PERSON, "/jobs add 0 9 * * *: List the open incidents.")
    card = await rig.shows("Next: 2027-03-04 09:00")
    assert "timezone" not in card["text"]
    rig.model.script(Say("Two are open."))
    await fire(rig, clock)
    await rig.shows("Two are open.")
    rig.press(card, "Pause")
    await rig.shows("is paused")
    assert (await only(rig)).state == "paused"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("", "with the time, a colon and the task"),
        ("tomorrow at nine", "with the time, a colon and the task"),
        ("tomorrow at nine:", "with the time, a colon and the task"),
        ("yesterday at nine: x", "It is now 2027-03-03 14:05"),
        ("whenever: x", "It is now 2027-03-03 14:05"),
        ("* * * * * *: x", "too often"),
    ],
)
async def test_what_cannot_be_is_told_and_nothing_made(rig: Rig, said: str, why: str) -> None:
    await rig.start()
    rig.telegram.say(PERSON, f"/jobs add {said}")
    await rig.shows(why)
    assert await jobs_of(rig).store.list_jobs() == ()


Cli = Callable[..., Awaitable[tuple[int, str]]]


@pytest.fixture
def cli(rig: Rig, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    rig.home.mkdir()
    for name, value in rig.env().items():
        monkeypatch.setenv(name, value)

    async def run(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        code = await asyncio.to_thread(main, ["jobs", "add", *words])
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


@pytest.mark.parametrize("running", [True, False])
async def test_the_command_line_writes_it_into_the_file(rig: Rig, cli: Cli, running: bool) -> None:
    if running:
        await rig.start()
    Vault(rig.home).keep(rig.where().id, "API_TOKEN", "sword fish")
    file, where = rig.home / "jobs.toml", ("--where", rig.where().id)
    odd = 'say "hi"\\n to \t\x7f ünï\ncode'
    code, said = await cli("one", odd, *where, "--schedule", "tomorrow at nine")
    assert code == 0 and "Made: one" in said and "next 2027-03-04 09:00" in said
    assert tomllib.loads(file.read_text())["one"]["prompt"] == odd
    file.write_text(f"# mine\n{file.read_text()}# the end")
    code, said = await cli("two", "x", *where, "--schedule", "@daily", "--zone", "Asia/Tokyo")
    assert code == 0 and "As before: 1" in said
    with pytest.raises(SystemExit, match="2"):
        await cli("bytes", "a\udcffb", *where, "--schedule", "@daily")
    kept = file.read_text()
    assert kept.startswith("# mine\n[one]") and "# the end\n\n[two]" in kept
    for words, why in (
        (("two", "y", "--schedule", "@daily"), "stands there already"),
        (("three", "y", "--schedule", "whenever"), "It is not clear when 'whenever' is"),
        (("three", "y", "--schedule", "@daily", "--zone", "Mars"), "Mars"),
        (("three", "", "--schedule", "@daily"), "[three]"),
        (("three", "open sword fish", "--schedule", "@daily"), "the value of a secret"),
        (("Three!", "y", "--schedule", "@daily"), "small letters"),
    ):
        code, said = await cli(*words, *where)
        assert code == 1 and why in said and "Nothing was changed." in said
    code, said = await cli("four", "y", "--schedule", "@daily", "--where", "nowhere")
    assert code == 1 and "no address" in said
    assert file.read_text() == kept and [one.name for one in rig.home.glob("tmp*")] == []
    if not running:
        await rig.start()
    assert sorted(job.id for job in await jobs_of(rig).store.list_jobs()) == ["one", "two"]


ADMINS = {"TELEGRAM_ADMIN_USERS": f"{ADMIN},{PERSON}"}


async def test_a_job_has_a_model_a_profile_and_tools_of_its_own(rig: Rig, clock: Shifted) -> None:
    rig.model.models.append("fake-large")
    await rig.start(**ADMINS)
    rig.telegram.say(
        PERSON, "/jobs add model=openai/fake-large profile=swe tools=files 0 9 * * *: Count."
    )
    card = await rig.shows("Next: 2027-03-04")
    assert "Uses: model openai/fake-large, profile swe, tools files" in card["text"]
    await rig.quiet()
    rig.telegram.say(PERSON, "hello")
    await rig.shows("ack hello")
    await rig.quiet()
    plain = rig.model.requests[-1].body
    rig.model.script(Say("Counted."))
    await fire(rig, clock)
    await rig.shows("Counted.")
    await rig.quiet()
    ran = rig.model.requests[-1].body
    assert (plain["model"], ran["model"]) == ("fake-model", "fake-large")
    names = {tool["function"]["name"] for tool in ran["tools"]}
    assert "read_file" in names and names <= {
        *("read_file", "write_file", "list_files", "str_replace_editor", "rollback"),
    }
    assert ran["messages"][0]["content"] != plain["messages"][0]["content"], "the profile's words"


@pytest.mark.parametrize(
    ("means", "env", "why"),
    [
        (
            "model=house/large",
            ADMINS,
            "no model called house/large. Available: max, pro, flash, openai/",
        ),
        ("profile=poet", {}, "no profile called poet. Available: general, "),
        ("tools=all", {}, "no tools called all. Available: charts, code, files"),
        ("model=max", {}, "Only an admin can choose a job's model."),
    ],
)
async def test_what_is_not_here_is_refused(
    rig: Rig, means: str, env: dict[str, str], why: str
) -> None:
    await rig.start(**env)
    rig.telegram.say(PERSON, f"/jobs add {means} 0 9 * * *: Count.")
    assert why in (await rig.shows(why))["text"]
    await rig.quiet()
    assert await jobs_of(rig).store.list_jobs() == ()
