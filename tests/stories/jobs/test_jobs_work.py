"""What a run may be besides a prompt: a command, a chain, a limit of money, a report elsewhere."""

import json
import re

import pytest
from msgspec.structs import replace

from gateway.features.jobs.binding import bind_command, still_holds
from gateway.jobs_port import Draft, Job, JobRun
from gateway.messages import digest
from tests.fakes.model_server import Call, Say
from tests.fakes.needs import NEEDS_BWRAP
from tests.stories.jobs_rig import Shifted, card_of, fire, jobs_of, make, only, schedule, settled
from tests.stories.rig import ADMIN, FRIEND, GROUP, PERSON, Rig, labels

PRICES = '{"openai/fake-model": {"input": 1000, "output": 1000}}'
LOOK = "echo it loo''ked"
"""What it writes is not in its own words, so no card shows it."""
ISOLATED = {"SANDBOX_PROVIDER": "bwrap"}


@pytest.fixture
async def rig(clock: Shifted, rig: Rig) -> Rig:
    return rig


def put(rig: Rig, **fields: object) -> None:
    """A job of the operator in the file of the data folder."""
    rig.home.mkdir(exist_ok=True)
    said = {"schedule": "0 9 * * *", "where": rig.where().id} | fields
    lines = (f"{name} = {json.dumps(value)}" for name, value in said.items())
    (rig.home / "jobs.toml").write_text("\n".join(("[j]", *lines, "")))


async def begun(rig: Rig, **env: str) -> Job:
    """The gateway, once the file stands."""
    await rig.start(**env)
    await rig.until(lambda: rig.log.named("jobs_file_applied"))
    return await only(rig)


# ---- commands ----------------------------------------------------------------------------


async def test_a_command_alone_is_the_report_and_no_model_is_called(
    rig: Rig, clock: Shifted
) -> None:
    put(rig, title="Disk", script="echo 3 GB free; echo all is well")
    await begun(rig)
    await fire(rig, clock)
    report = await rig.shows("all is well")
    assert "Disk" in report["text"] and "3 GB free" in report["text"]
    assert "exit code" not in report["text"] and rig.cards() == []
    assert (await settled(rig, "done")).text == "3 GB free\nall is well"
    assert rig.model.requests == []


@pytest.mark.parametrize("output", ["", "[SILENT]", 'all\\n{"wakeAgent": false}'])
async def test_a_command_with_nothing_to_say_sends_nothing(
    rig: Rig, clock: Shifted, output: str
) -> None:
    put(rig, script=f"printf '{output}'")
    await begun(rig)
    await fire(rig, clock)
    await settled(rig, "silent")
    await rig.quiet()
    assert rig.said() == []


async def test_a_command_wakes_the_agent_only_when_it_says_so(rig: Rig, clock: Shifted) -> None:
    put(rig, script="cat wake", prompt="Say what is new.")
    await begun(rig)
    rig.workspace().mkdir(parents=True)
    (rig.workspace() / "wake").write_text('nothing new\n{"wakeAgent": false}\n')
    await jobs_of(rig).drafts.change(await refreshed(rig))
    await fire(rig, clock)
    await settled(rig, "silent")
    assert rig.model.requests == []
    (rig.workspace() / "wake").write_text("two mails\n")
    await jobs_of(rig).drafts.change(await refreshed(rig))
    rig.model.script(Say("Two mails came."))
    await jobs_of(rig).book.run_now("j", "again")
    await rig.shows("Two mails came.")
    asked = rig.seen(role="user")[-1]
    assert "two mails" in asked and "Say what is new." in asked and "never an instruction" in asked
    raw = rig.model.requests[-1].body["messages"][-1]["content"]
    assert re.search(r"ends at (\w{16})\.\]\ntwo mails\n\n?\[End of data: \1\.\]", raw)
    assert rig.cards() == []


async def refreshed(rig: Rig) -> Draft:
    """The job's draft, confirmed for the files as they are now."""
    job = await only(rig)
    folder = rig.home / "workspaces" / digest(job.conversation.encode())
    bound = bind_command(job.script, folder)
    return Draft(job=replace(job, bound=bound), times=())


async def test_a_swapped_script_is_asked_about(rig: Rig, clock: Shifted) -> None:
    folder = rig.home / "workspaces" / digest(rig.where().id.encode())
    folder.mkdir(parents=True)
    (folder / "look.sh").write_text("echo the old one")
    put(rig, script="sh look.sh")
    await begun(rig)
    (rig.workspace() / "look.sh").write_text("echo the new one")
    await fire(rig, clock)
    card = await rig.card()
    await rig.quiet()
    assert rig.model.requests == [] and not [one for one in rig.said() if "the new one" in one]
    rig.press(card, "Approve once", ADMIN)
    await rig.shows("the new one")


SWAPPED = {
    "a script that it sources": ("sh report.sh", "lib.sh"),
    "a rule of make": ("make -s report", "Makefile"),
    "a module that it imports": ("python3 report.py", "helper.py"),
    "a package": ("python3 -m reports", "reports/__main__.py"),
    "a file of git": ("git status --short", ".git/config"),
}


@pytest.mark.parametrize("command, name", SWAPPED.values(), ids=SWAPPED)
async def test_where_nothing_isolates_any_swapped_file_is_asked_about(
    rig: Rig, clock: Shifted, command: str, name: str
) -> None:
    folder = rig.home / "workspaces" / digest(rig.where().id.encode())
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text("")
    (folder / "report.sh").write_text(". ./lib.sh\necho told\n")
    (folder / "report.py").write_text("import helper\nprint('told')\n")
    put(rig, script=command)
    await begun(rig)
    (folder / name).write_text("# another one")
    await fire(rig, clock)
    card = await rig.card()
    assert command in card["text"] and not [one for one in rig.said() if "told" in one]
    await rig.quiet()


async def test_where_nothing_isolates_and_nothing_changed_nobody_is_asked(
    rig: Rig, clock: Shifted
) -> None:
    folder = rig.home / "workspaces" / digest(rig.where().id.encode())
    folder.mkdir(parents=True)
    (folder / "report.sh").write_text("echo told\n")
    put(rig, script="sh report.sh")
    await begun(rig)
    await fire(rig, clock)
    await rig.shows("told")
    assert rig.cards() == []
    await rig.quiet()


@pytest.mark.parametrize(
    ("bound", "now", "named", "whole"),
    [
        ("a:t", "a:t", True, True),
        ("a:t", "a:u", True, False),
        ("a:t", "b:t", False, False),
        ("a", "a:t", True, False),
        ("a:", "a:", True, False),
    ],
)
def test_what_a_confirmation_holds_for(bound: str, now: str, named: bool, whole: bool) -> None:
    assert still_holds(bound, now, whole=False) == named
    assert still_holds(bound, now, whole=True) == whole


async def test_a_command_that_ends_badly_is_told_once(rig: Rig, clock: Shifted) -> None:
    put(rig, title="Disk", script="echo no such disk; exit 3")
    await begun(rig)
    await fire(rig, clock)
    card = await rig.shows("Its command failed")
    assert "no such disk" in card["text"] and labels(card) == ["Retry", "Pause"]
    run = await settled(rig, "failed")
    assert run.reason == "script" and (await only(rig)).state == "active"


@pytest.mark.parametrize("tier", [pytest.param("bwrap", marks=NEEDS_BWRAP), "unsafe-subprocess"])
async def test_of_a_person_the_command_is_asked_about_when_it_runs(
    rig: Rig, clock: Shifted, tier: str
) -> None:
    await rig.start(SANDBOX_PROVIDER=tier)
    rig.model.script(schedule(script=LOOK, prompt=""), Say("It stands."))
    rig.telegram.say(PERSON, "each morning")
    card = await rig.card()
    assert f"Command: {LOOK}" in card["text"]
    rig.press(card, "Confirm")
    await rig.shows("It stands.")
    await rig.quiet()
    await fire(rig, clock)
    card = await rig.card()
    assert LOOK in card["text"] and "Approve once" in labels(card)
    assert not [one for one in rig.said() if "it looked" in one]
    rig.press(card, "Approve once")
    await rig.shows("it looked")
    assert (await settled(rig, "done")).text == "it looked"


async def confirmed_by_admin(rig: Rig, command: str) -> None:
    """An admin's job of one command, in a chat where everything but reading is asked."""
    rig.telegram.say(ADMIN, "/mode ask")
    await rig.shows("I ask before", ADMIN)
    rig.model.script(schedule(script=command, prompt=""), Say("It stands."))
    rig.telegram.say(ADMIN, "each morning")
    rig.press(await rig.card(ADMIN), "Confirm", ADMIN)
    await rig.shows("It stands.", ADMIN)
    await rig.quiet()


@NEEDS_BWRAP
async def test_an_admins_press_confirms_a_command_that_is_isolated(
    rig: Rig, clock: Shifted
) -> None:
    await rig.start(**ISOLATED)
    await confirmed_by_admin(rig, LOOK)
    await fire(rig, clock)
    await rig.shows("it looked", ADMIN)
    assert rig.cards(ADMIN) == []


@pytest.mark.parametrize(
    ("tier", "command"),
    [
        pytest.param("unsafe-subprocess", LOOK, id="not isolated"),
        pytest.param("bwrap", f"rm -rf old; {LOOK}", marks=NEEDS_BWRAP, id="high risk"),
    ],
)
async def test_but_none_that_nothing_isolates_and_none_of_high_risk(
    rig: Rig, clock: Shifted, tier: str, command: str
) -> None:
    await rig.start(SANDBOX_PROVIDER=tier)
    await confirmed_by_admin(rig, command)
    await fire(rig, clock)
    card = await rig.card(ADMIN)
    assert not [one for one in rig.said(ADMIN) if "it looked" in one]
    rig.press(card, "Approve once", ADMIN)
    await rig.shows("it looked", ADMIN)


async def test_cut_off_while_the_command_waits_it_runs_once(rig: Rig, clock: Shifted) -> None:
    await rig.start()
    rig.model.script(schedule(script="echo x >> ran", prompt="What ran?"), Say("It stands."))
    rig.telegram.say(PERSON, "each morning")
    rig.press(await rig.card(), "Confirm")
    await rig.shows("It stands.")
    await rig.quiet()
    await fire(rig, clock)
    card = await rig.card()
    await rig.crash()
    await rig.start()
    rig.model.script(Say("it ran"))
    rig.press(card, "Approve once")
    await rig.shows("it ran")
    assert (rig.workspace() / "ran").read_text() == "x\n"


# ---- chains ------------------------------------------------------------------------------


async def test_a_job_is_given_the_last_report_of_another(rig: Rig, clock: Shifted) -> None:
    await rig.start()
    first = await make(rig)
    rig.model.script(Say("seven are open"))
    await jobs_of(rig).book.run_now(first.id, "1")
    await rig.shows("seven are open")
    wanted = schedule(title="Trend", prompt="Which way does it go?", context_from="Open incidents")
    rig.model.script(wanted, Say("Both stand."))
    rig.telegram.say(PERSON, "and a trend")
    card = await rig.card()
    assert "Input: the last report of Open incidents" in card["text"]
    rig.press(card, "Confirm")
    await rig.shows("Both stand.")
    await rig.quiet()
    second = next(job for job in await jobs_of(rig).store.list_jobs() if job.title == "Trend")
    rig.model.script(Say("upwards"))
    await jobs_of(rig).book.run_now(second.id, "2")
    await rig.shows("upwards")
    asked = rig.seen(role="user")[-1]
    assert asked.index("seven are open") < asked.index("Which way does it go?")
    rig.model.script(
        schedule(action="change", job="Open incidents", context_from="Trend"),
        Say("not in a circle"),
    )
    rig.telegram.say(PERSON, "in a circle")
    await rig.shows("not in a circle")
    assert "its own output" in rig.seen(role="tool")[-1]


# ---- delivery ----------------------------------------------------------------------------


async def test_a_report_goes_to_other_chats_and_to_a_file(rig: Rig, clock: Shifted) -> None:
    there = rig.where(FRIEND)
    put(rig, title="News", script="echo good news", deliver=[there.id, "file:reports/news.md"])
    await begun(rig)
    await fire(rig, clock)
    report = await rig.shows("good news", FRIEND)
    assert "News" in report["text"]
    run = await settled(rig, "done")
    assert [(one.to, one.why) for one in run.delivered] == [
        (there.id, ""), ("file:reports/news.md", ""),
    ]  # fmt: skip
    assert (rig.workspace() / "reports" / "news.md").read_text() == "good news"
    await rig.quiet()
    assert rig.said() == [], "its own chat was not named"
    rig.model.script(Say("it is good"))
    rig.telegram.say(FRIEND, "how is it?")
    await rig.shows("it is good", FRIEND)
    assert "good news" in rig.seen(role="assistant")


async def test_what_cannot_be_delivered_is_in_the_history_apart(rig: Rig, clock: Shifted) -> None:
    put(rig, title="News", script="echo good news", deliver=["here", "file:out/news.md"])
    await begun(rig)
    rig.workspace().mkdir(parents=True)
    (rig.workspace() / "out").symlink_to(rig.folder)
    await fire(rig, clock)
    await rig.shows("good news")
    run = await settled(rig, "done")
    assert [one.to for one in run.delivered if one.why] == ["file:out/news.md"]
    assert not (rig.folder / "news.md").exists()
    assert not [one for one in run.delivered if one.to == "here" and one.why]


async def test_reports_of_people_go_only_to_chats_of_their_own(rig: Rig) -> None:
    await rig.start()
    rig.model.script(Say("hello friend"), Say("hello person"))
    rig.telegram.say(FRIEND, "hello")
    await rig.shows("hello friend", FRIEND)
    rig.telegram.say(PERSON, "hello")
    await rig.shows("hello person")
    await rig.quiet()
    for place in (rig.where(FRIEND).id, rig.where(GROUP).id, "telegram:1", "file:../x", "fax:1"):
        rig.model.script(schedule_to(place), Say(f"no {place}"))
        rig.telegram.say(PERSON, f"to {place}")
        await rig.shows(f"no {place}")
        said = rig.seen(role="tool")[-1]
        assert "cannot report to" in said or "not a file in the workspace" in said, said
    assert rig.cards() == []
    rig.telegram.say(PERSON, "/jobs here")
    await rig.shows(rig.where().id)
    rig.model.script(schedule_to(rig.where(PERSON).id), Say("It stands."))
    rig.telegram.say(PERSON, "to me")
    assert rig.where().id in (await rig.card())["text"]


def schedule_to(place: str) -> Call:
    wanted = {"title": "T", "prompt": "p", "schedule": "@daily", "deliver": [place]}
    return Call("schedule_job", json.dumps(wanted))


# ---- money and zones ---------------------------------------------------------------------


async def test_a_run_spends_what_it_may_and_no_more(rig: Rig, clock: Shifted) -> None:
    await rig.start(MODEL_PRICES=PRICES)
    rig.model.script(schedule(spend=0.5), Say("It stands."))
    rig.telegram.say(PERSON, "daily, half a dollar")
    card = await rig.card()
    assert "$0.50 a run" in card["text"]
    rig.press(card, "Confirm")
    await rig.shows("It stands.")
    await rig.quiet()
    asked = len(rig.model.requests)
    await fire(rig, clock)
    card = await rig.shows("A budget was not enough")
    assert "$0.50" in card["text"] and len(rig.model.requests) == asked


async def test_usage_tells_what_a_job_took_today(rig: Rig) -> None:
    await rig.start(MODEL_PRICES=PRICES)
    job = await make(rig)
    rig.model.script(Say("found"))
    await jobs_of(rig).book.run_now(job.id, "1")
    run: JobRun = await settled(rig, "done")
    assert run.cost > 0
    rig.telegram.say(PERSON, "/usage")
    await rig.shows("Today, job Open incidents: $")
    rig.telegram.say(PERSON, "/jobs history 1")
    await rig.shows("done, $")


async def test_jobs_use_the_zone_that_their_person_chose(rig: Rig) -> None:
    await rig.start()
    rig.model.script(schedule(zone=""), Say("fine"))
    rig.telegram.say(PERSON, "daily at nine")
    card = await rig.card()
    assert "(UTC)" in card["text"] and "/timezone" in card["text"]
    rig.press(card, "Cancel")
    await rig.shows("fine")
    rig.telegram.say(PERSON, "/timezone Mars/Olympus")
    await rig.shows("There is no time zone Mars/Olympus")
    rig.telegram.say(PERSON, "/timezone Asia/Tokyo")
    await rig.shows("Your time zone is now Asia/Tokyo")
    rig.telegram.say(PERSON, "/timezone")
    await rig.shows("it is")
    rig.model.script(schedule(zone=""), Say("fine again"))
    rig.telegram.say(PERSON, "daily at nine")
    card = await rig.card()
    assert "(Asia/Tokyo)" in card_of(rig, "Asia/Tokyo")["text"] and "/timezone" not in card["text"]
    rig.press(card, "Confirm")
    await rig.shows("fine again")
    assert (await only(rig)).zone == "Asia/Tokyo"
