"""A job changed by its fields: in a chat, on the command line, over HTTP."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import aiohttp
import pytest
from msgspec.structs import replace

from gateway.cli.main import main
from gateway.features.jobs.lines.editing import FIELDS, read_fields
from gateway.jobs_port import Job
from tests.fakes.model_server import Call, Json, Say
from tests.stories.jobs_rig import Shifted, fire, jobs_of, make, only, own, schedule, settled
from tests.stories.rig import ADMIN, PERSON, Rig

BEARER = "a-token-of-the-page-0123456789"
MORE = {"TURNKEEPER_TOKEN": BEARER, "TOOLSETS": json.dumps({"reading": ["read_file"]})}


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("model=pro", {"model": "pro"}),
        ("model=pro  Profile=swe\ntools=-", {"model": "pro", "profile": "swe", "tools": "-"}),
        ("schedule=every day at nine zone=UTC", {"schedule": "every day at nine", "zone": "UTC"}),
        ("title=A b prompt=set model=x and\ntitle=y", {"title": "A b", "prompt": "set model=x and\ntitle=y"}),
        ("profile= model=max", {"profile": "", "model": "max"}),
        ("at nine", {}),
        ("colour=red", {}),
        ("model=a model=b", {}),
        ("", {}),
    ],
)  # fmt: skip
def test_fields_of_a_line(line: str, fields: dict[str, str]) -> None:
    assert read_fields(line) == fields
    assert not fields or set(fields) <= set(FIELDS)


def assert_same(one: Job, other: Job, *changed: str) -> None:
    """All but `changed` is as it was."""
    for name in Job.__struct_fields__:
        if name not in ("version", *changed):
            assert getattr(one, name) == getattr(other, name), name


async def test_in_a_chat(rig: Rig) -> None:
    await rig.start(**MORE)
    before = await make(rig)
    said = rig.telegram
    await jobs_of(rig).book.pause(before.id)
    before = await only(rig)
    said.say(PERSON, "/jobs edit profile=swe tools=reading title=Reading what is open")
    await rig.shows("The job Reading what is open was changed.\nUses: profile swe, tools reading")
    after = await only(rig)
    assert (after.profile, after.tools, after.state) == ("swe", "reading", "paused")
    assert_same(before, after, "profile", "tools", "title")
    said.say(PERSON, "/jobs edit 1 tools=- schedule=tomorrow at nine")
    await rig.until(lambda: rig.said()[-1].endswith("was changed.\nUses: profile swe"))
    last = await only(rig)
    assert (last.tools, last.state) == ("", "paused") and last.schedule.startswith("at 20")
    for line, why in (
        ("1 profile=pirate", "There is no profile called pirate. Available: general"),
        ("1 tools=everything", "There is no tools called everything"),
        ("1 model=max", "Only an admin can choose"),
        ("1 schedule=-", "A job cannot be without schedule."),
        ("1 schedule=yesterday at nine", "It is now"),
        ("1 zone=Mars/Base", "Mars/Base"),
        (f"1 title={'x' * 81}", "title may have at most 80 characters."),
        ("1 colour=red", "Write /jobs edit"),
        ("1 at nine please", "Write /jobs edit"),
        ("2 model=pro", "There is no such job."),
    ):
        said.say(PERSON, f"/jobs edit {line}")
        await rig.shows(why)
        assert await only(rig) == last, line


async def test_an_admin_names_models_that_are_there(rig: Rig) -> None:
    await rig.start(**MORE)
    rig.telegram.say(ADMIN, "/jobs add @daily: read")
    await rig.shows("Next: ", ADMIN)
    job = await only(rig)
    rig.telegram.say(ADMIN, "/jobs edit model=nowhere/gpt")
    await rig.shows("There is no model called nowhere/gpt. Available: max", ADMIN)
    rig.telegram.say(ADMIN, "/jobs edit model=openai/fake-modl")
    await rig.shows("fake-model", ADMIN)
    rig.telegram.say(ADMIN, "/jobs edit model=pro")
    await rig.shows("Uses: model pro", ADMIN)
    assert_same(job, await only(rig), "model")


async def test_the_agent_names_models_that_are_there_and_ends_no_pause(rig: Rig) -> None:
    await rig.start(**MORE)
    wrong = schedule(model="openai/fake-modl")
    rig.model.script(wrong, schedule(model="nowhere/gpt"), schedule(model="openai/fake-model"))
    rig.model.script(Say("It stands."))
    rig.telegram.say(ADMIN, "Every day at nine, by fake-modl")
    rig.press(await rig.card(ADMIN), "Confirm", ADMIN)
    await rig.shows("It stands.", ADMIN)
    refused = [rig.model.requests[n].body["messages"][-1]["content"] for n in (1, 2)]
    assert "fake-model" in refused[0] and "There is no model called nowhere/gpt" in refused[1]
    assert (await only(rig)).model == "openai/fake-model"
    await jobs_of(rig).book.pause((await only(rig)).id)
    change = {"action": "change", "title": "Else", "model": "openai/fake-modl"}
    for wanted in (change, change | {"model": ""}):
        rig.model.script(Call("schedule_job", json.dumps(wanted)))
    rig.model.script(Say("Changed."))
    rig.telegram.say(ADMIN, "Call it otherwise")
    rig.press(await rig.card(ADMIN), "Confirm", ADMIN)
    await rig.shows("Changed.", ADMIN)
    job = await only(rig)
    assert (job.title, job.model, job.state) == ("Else", "", "paused")
    assert rig.model.requests[-1].body["messages"][-1]["content"] == "Done. It stays paused."


Cli = Callable[..., Awaitable[tuple[int, str]]]


@pytest.fixture
def cli(rig: Rig, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    for name, value in rig.env(**MORE).items():
        monkeypatch.setenv(name, value)

    async def run(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        code = await asyncio.to_thread(main, ["jobs", *words])
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


async def test_on_the_command_line_with_and_without_a_gateway(rig: Rig, cli: Cli) -> None:
    await rig.start(**MORE)
    before = await make(rig)
    code, said = await cli("edit", before.id, "--model", "pro", "--profile", "swe")
    assert (code, said.splitlines()[-1].endswith("model pro, profile swe")) == (0, True), said
    after = await only(rig)
    assert_same(before, after, "model", "profile")
    code, said = await cli("edit", before.id, "--model", "openai/fake-modl")
    assert code == 1 and "fake-model" in said and "Nothing was changed." in said
    await rig.stop()
    for words, why in (
        (("--model", "nowhere/gpt"), "There is no model called nowhere/gpt. Available: max"),
        (("--tools", "everything"), "There is no tools called everything"),
        ((), "what to change"),
    ):
        code, said = await cli("edit", before.id, *words)
        assert code == 1 and why in said, said
    code, said = await cli("edit", before.id, "--model", "", "--prompt", "Say what is new.")
    assert code == 0, said
    await rig.start(**MORE)
    last = await only(rig)
    assert (last.model, last.prompt) == ("", "Say what is new.")
    assert_same(after, last, "model", "prompt")


async def test_over_http(rig: Rig) -> None:
    await rig.start(**MORE)

    async def post(path: str, body: Json) -> tuple[int, Json]:
        async with (
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {BEARER}"}) as http,
            http.post(f"{rig.url}api/jobs/{path}", json=body) as got,
        ):
            return got.status, json.loads(await got.text())

    theirs = await make(rig)
    assert (await post(f"{theirs.id}/edit", {"title": "mine"}))[0] == 404
    await own(rig)
    assert await post("mine/edit", {"profile": "swe", "key": "k"}) == (
        200,
        {"done": True, "key": "k"},
    )
    job = await jobs_of(rig).store.get("mine")
    assert job is not None and job.profile == "swe"
    for body, why in (
        ({"profile": "pirate"}, "There is no profile called pirate. Available: general"),
        ({"zone": "Mars/Base"}, "Mars/Base"),
        ({"prompt": ""}, "A job needs a prompt"),
        ({}, "what to change"),
        ({"owner": "web:ann"}, "not the JSON that belongs here"),
        ({"title": 3}, "not the JSON that belongs here"),
    ):
        status, said = await post("mine/edit", body)
        assert status == 400 and why in said["error"], said
    assert await jobs_of(rig).store.get("mine") == job


@pytest.mark.parametrize("change", ["edited", "deleted", "paused", "moved"])
@pytest.mark.parametrize("cause", ["due", "by hand"])
async def test_a_run_that_waits_obeys_what_was_confirmed_meanwhile(
    clock: Shifted, rig: Rig, change: str, cause: str
) -> None:
    """Its chat is busy when it is fired. A run by hand is one in spite of a pause."""
    await rig.start()
    job = await make(rig)
    rig.model.gate = asyncio.Event()
    rig.telegram.say(PERSON, "long work")
    await rig.model.wait_inflight(1)
    if cause == "due":
        await fire(rig, clock)
    else:
        assert await jobs_of(rig).book.run_now(job.id, "k")
    await settled(rig, "fired")
    session = rig.session()
    assert session is not None
    await rig.until(lambda: session.state.queue)
    match change:
        case "edited":
            rig.telegram.say(PERSON, "/jobs edit title=New title prompt=Count the new things.")
            await rig.shows("The job New title was changed.")
        case "deleted":
            assert await jobs_of(rig).book.remove(job.id)
        case "paused":
            assert await jobs_of(rig).book.pause(job.id)
        case _:  # as the operator's file moves one
            now = await only(rig)
            there = now.conversation.replace(str(PERSON), str(ADMIN))
            moved = replace(now, conversation=there, version="moved")
            assert await jobs_of(rig).store.commit(now, moved, ())
    rig.model.gate.set()
    await rig.shows("ack long work")
    if change == "moved":
        await rig.telegram.wait_text(ADMIN, "ack [A scheduled job")
    await rig.quiet()
    asked = [text for text in rig.seen(-1, "user") if "A scheduled job" in text]
    if change == "edited":
        assert "Count the new things." in asked[-1] and "New title" in asked[-1]
        assert not [text for text in asked if job.prompt in text]
    elif change == "moved":
        assert len(asked) == 1 and job.prompt in asked[0]
        assert "ack" in rig.telegram.chats[ADMIN][-1]["text"], "its report"
    elif change == "paused" and cause == "by hand":
        assert job.prompt in asked[-1]
    else:
        assert not asked
        (run,) = await jobs_of(rig).store.runs(job.id, 9)
        assert (run.state, run.reason) == ("stopped", change)
