"""Jobs of the operator: the file `jobs.toml`, and the command line, with and without a gateway."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from gateway.cli.main import main
from tests.fakes.model_server import Call, Json, Say
from tests.stories.jobs_rig import Shifted, fire, jobs_of, make, only, runs, settled
from tests.stories.rig import ADMIN, PERSON, Rig, labels

REPORT = """\
# the operator's jobs
[report]
title = "Open incidents"
prompt = \"\"\"
List the
open incidents.\"\"\"
schedule = "0 9 * * *"
zone = "Europe/Berlin"
where = "{where}"
"""
WRONG = """\
[report]
prompt = \"\"\"
[not-a-table]
x\"\"\"
schedule = "0 9 31 2 *"
where = "{where}"
zoen = "Europe/Berlin"

[second]
schedule = "* * * * * *"
prompt = "too often"
where = "nowhere"
missed = "sometimes"
spend = "much"

[third]
prompt = "x"
schedule = "@daily"
where = "{where}"
context_from = "fourth"
deliver = ["here", "fax:12"]
"""


@pytest.fixture
async def rig(clock: Shifted, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Rig:
    rig.home.mkdir()
    for name, value in rig.env().items():
        monkeypatch.setenv(name, value)
    return rig


Cli = Callable[..., Awaitable[tuple[int, str]]]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """`turnkeeper jobs` with words; its exit code and all that it said."""

    async def run(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        code = await asyncio.to_thread(main, ["jobs", *words])
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


def put(rig: Rig, text: str) -> None:
    (rig.home / "jobs.toml").write_text(text.replace("{where}", rig.where().id))


async def ids(cli: Cli) -> dict[str, Json]:
    code, said = await cli("list", "--json")
    assert code == 0
    return {job["id"]: job for job in json.loads(said)}


async def test_the_file_is_applied_at_start_and_needs_no_press(rig: Rig, clock: Shifted) -> None:
    put(rig, REPORT)
    await rig.start()
    await rig.until(lambda: rig.log.named("jobs_file_applied"))
    job = await only(rig)
    assert (job.id, job.owner.key, job.zone) == ("report", "machine:operator", "Europe/Berlin")
    assert job.prompt == "List the\nopen incidents."
    rig.model.script(Say("Two are open."))
    await fire(rig, clock)
    await rig.shows("Two are open.")
    run = await settled(rig, "done")
    turn = await rig.store.turn(run.turn)
    assert run.text == "Two are open." and turn is not None and turn.role == "user"
    rig.model.script(Say("about that"))
    rig.telegram.say(PERSON, "and?")
    await rig.shows("about that")
    assert any("Two are open." in said for said in rig.seen(role="assistant"))


async def test_each_error_with_its_line_and_nothing_applied(rig: Rig, cli: Cli) -> None:
    put(rig, REPORT)
    await rig.start()
    await rig.until(lambda: rig.log.named("jobs_file_applied"))
    put(rig, REPORT.replace("incidents", "tickets") + WRONG.replace("[report]", "[first]"))
    code, said = await cli("apply")
    assert code == 1 and "Nothing was changed" in said
    lines = [line.split(": ", 1) for line in said.splitlines() if line.startswith("jobs.toml")]
    start = REPORT.count("\n")
    assert [(int(at.rsplit(" ", 1)[1]) - start, what.split("]")[0]) for at, what in lines] == [
        (5, "[first"), (7, "[first"), (10, "[second"), (12, "[second"), (13, "[second"),
        (14, "[second"), (20, "[third"), (21, "[third"),
    ]  # fmt: skip
    for words in ("no day 31 in month 2", "did you mean zone", "too often", "no address",
                  "skip, latest, all", "a number", "no job 'fourth'", "'fax:12'"):  # fmt: skip
        assert words in said, words
    assert (await only(rig)).title == "Open incidents"


@pytest.mark.parametrize(
    ("text", "line"),
    [("[a]\nprompt = x\n", 2), ("x = 1\n", 1), ("[a]\nprompt = '''\n", 2), ("[a]\n[a]\n", 2)],
)
async def test_what_is_no_toml_is_told_by_its_line(
    rig: Rig, cli: Cli, text: str, line: int
) -> None:
    put(rig, text)
    code, said = await cli("apply")
    assert code == 1 and said.startswith(f"jobs.toml, line {line}: ")


async def test_what_the_file_says_holds(rig: Rig, cli: Cli) -> None:
    put(rig, REPORT + '[other]\nscript = "true"\nhook = "push"\nwhere = "{where}"\n')
    assert await cli("apply") == (0, "Made: report, other\nAs before: 0\n")
    assert await cli("apply") == (0, "As before: 2\n")
    assert (await cli("pause", "report"))[0] == 0
    put(rig, REPORT.replace("0 9", "0 8"))
    assert await cli("apply") == (0, "Changed: report\nRemoved: other\nAs before: 0\n")
    report = (await ids(cli))["report"]
    assert (report["schedule"], report["state"]) == ("0 8 * * *", "active")
    (rig.home / "jobs.toml").unlink()
    assert (await cli("apply"))[0] == 1 and list(await ids(cli)) == ["report"]
    put(rig, "")
    assert await cli("apply") == (0, "Removed: report\nAs before: 0\n")


async def test_jobs_of_chats_are_none_of_its_business(rig: Rig, cli: Cli) -> None:
    await rig.start()
    job = await make(rig)
    put(rig, "")
    assert await cli("apply") == (0, "As before: 0\n")
    assert await only(rig) == job
    put(rig, REPORT.replace("[report]", f"[{job.id.lower()}]"))
    assert (await cli("apply"))[0] == 0, "another name"
    assert len(await ids(cli)) == 2


async def test_a_pause_outlives_an_unchanged_file(rig: Rig, cli: Cli) -> None:
    put(rig, REPORT)
    await cli("apply")
    await cli("pause", "report")
    await rig.start()
    await rig.until(lambda: rig.log.named("jobs_file_applied"))
    assert (await only(rig)).state == "paused"


async def test_a_change_of_the_file_is_noticed(rig: Rig, clock: Shifted) -> None:
    put(rig, REPORT)
    await rig.start()
    await rig.until(lambda: rig.log.named("jobs_file_applied"))
    put(rig, REPORT.replace("0 9", "30 9"))
    jobs_of(rig).bell.set()
    await rig.until(lambda: len(rig.log.named("jobs_file_applied")) == 2)
    assert (await only(rig)).schedule == "30 9 * * *"
    put(rig, "[report\n")
    jobs_of(rig).bell.set()
    await rig.until(lambda: rig.log.named("jobs_file_refused"))
    assert (await only(rig)).schedule == "30 9 * * *"


async def test_a_chat_pauses_a_job_of_the_file_and_changes_it_not(rig: Rig) -> None:
    put(rig, REPORT)
    await rig.start()
    await rig.until(lambda: rig.log.named("jobs_file_applied"))
    rig.telegram.say(PERSON, "/jobs")
    await rig.shows("You have no jobs")
    put(rig, REPORT.replace("{where}", rig.where(ADMIN).id))
    jobs_of(rig).bell.set()
    await rig.until(lambda: len(rig.log.named("jobs_file_applied")) == 2)
    rig.telegram.say(ADMIN, "/jobs delete 1")
    await rig.shows("is defined in the gateway's jobs.toml", ADMIN)
    rig.telegram.say(ADMIN, "/jobs pause 1")
    await rig.shows("is paused", ADMIN)
    assert (await only(rig)).state == "paused"


async def test_what_a_job_of_the_file_asks_an_admin_decides(rig: Rig, clock: Shifted) -> None:
    put(rig, REPORT.replace("{where}", rig.where(ADMIN).id))
    await rig.start()
    await rig.until(lambda: rig.log.named("jobs_file_applied"))
    rig.model.script(Call("run_command", '{"command": "rm -rf x"}'), Say("removed"))
    await fire(rig, clock)
    card = await rig.card(ADMIN)
    assert "Approve once" in labels(card)
    rig.press(card, "Approve once", ADMIN)
    await rig.shows("removed", ADMIN)


async def test_the_command_line_over_the_socket(rig: Rig, cli: Cli, clock: Shifted) -> None:
    await rig.start()
    job = await make(rig)
    shown = (await ids(cli))[job.id]
    assert shown["title"] == job.title and shown["where"] == rig.where().id
    assert len(shown["next"]) == 3 and shown["next"][0].endswith("Z")
    code, said = await cli("show", job.id)
    assert code == 0 and "schedule: 0 9 * * *" in said
    _, listed = await cli("list")
    assert job.title in listed and listed.count(f"({job.zone})") == 1
    assert (await cli("pause", job.id))[0] == 0 and (await only(rig)).state == "paused"
    code, said = await cli("pause", job.id)
    assert code == 1 and "cannot be paused" in said
    assert (await cli("resume", job.id[:10]))[0] == 0 and (await only(rig)).state == "active"
    rig.model.script(Say("by hand"))
    assert await cli("run", job.id) == (0, f"{job.title} runs now.\n")
    await rig.shows("by hand")
    await settled(rig, "done")
    code, said = await cli("history", job.id, "--json")
    (run,) = json.loads(said)
    assert (run["state"], run["text"], run["delivered"]) == ("done", "by hand", [])
    assert "done" in (await cli("history", job.id))[1]
    assert (await cli("delete", job.id))[0] == 0 and await jobs_of(rig).store.list_jobs() == ()
    for action in ("show", "run", "delete", "history"):
        code, said = await cli(action, "nothing")
        assert code == 1 and "There is no job 'nothing'" in said


async def test_without_a_gateway_it_waits_for_the_next_start(rig: Rig, cli: Cli) -> None:
    await rig.start()
    job = await make(rig)
    await rig.stop()
    rig.model.script(Say("begun without a gateway"))
    code, said = await cli("run", job.id)
    assert code == 0 and "when the gateway starts" in said
    await rig.start()
    await rig.shows("begun without a gateway")
    assert len(await runs(rig)) == 1


def test_words_that_cannot_be(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["jobs", "fly"], ["jobs", "show"]):
        with pytest.raises(SystemExit) as end:
            main(words)
        assert end.value.code == 2
    assert "usage" in capsys.readouterr().err
