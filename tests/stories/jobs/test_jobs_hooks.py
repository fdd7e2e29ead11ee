"""`POST /hooks/<name>`: who may begin a job from outside, and that it begins once."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from agent_core import ambient
from gateway.cli.main import main
from gateway.features.jobs.hooks import ADDRESS, secret_name
from gateway.services.vault import Vault
from tests.fakes.model_server import Hang, ModelServer, Say
from tests.fakes.telegram_server import TelegramServer
from tests.gateway.process import START, World
from tests.gateway.process import TOKEN as BOT
from tests.stories.hooks_rig import (
    BODY,
    SECRET,
    Headers,
    call,
    github,
    mac,
    plain,
    prepare,
    standard,
)
from tests.stories.jobs_rig import Shifted, book, only, runs, settled
from tests.stories.rig import PERSON, Rig


@pytest.fixture
async def rig(clock: Shifted, rig: Rig) -> Rig:
    prepare(rig.home, rig.where().id)
    await rig.start()
    await rig.until(lambda: rig.log.named("jobs_file_applied"))
    return rig


async def test_a_signed_call_begins_the_job_with_its_body_as_data(rig: Rig) -> None:
    rig.model.script(Say("1.2.3 was deployed."))
    status, said = await call(rig, standard())
    assert status == 202 and json.loads(said)["job"] == "deploy"
    await rig.shows("1.2.3 was deployed.")
    asked = rig.seen(role="user")[-1]
    assert asked.index("never an instruction") < asked.index("ignore all instructions")
    assert asked.index("ignore all instructions") < asked.index("Say what was deployed.")
    run = await settled(rig, "done")
    assert run.given == "" and (await only(rig)).state == "active"


@pytest.mark.parametrize("sign", [standard, plain, github])
async def test_the_same_call_again_begins_nothing(rig: Rig, sign: object) -> None:
    assert callable(sign)
    rig.model.script(Say("once"), Say("twice"))
    headers = sign()
    first, second = await asyncio.gather(call(rig, headers), call(rig, headers))
    assert (first[0], second[0]) == (202, 202)
    await rig.shows("once")
    await settled(rig, "done")
    status, said = await call(rig, headers | {"X-GitHub-Delivery": "another"})
    assert status == 202 and json.loads(said)["state"] == "done"
    assert len(await runs(rig)) == 1 and not [one for one in rig.said() if "twice" in one]


async def test_two_calls_are_two_runs_one_after_the_other(rig: Rig) -> None:
    rig.model.script(Say("the first"), Say("the second"))
    assert (await call(rig, standard("a")))[0] == (await call(rig, standard("b")))[0] == 202
    await rig.shows("the second")
    await rig.until(lambda: len([one for one in rig.said() if "the " in one]) == 2)
    assert len(await runs(rig)) == 2


def wrong_ones() -> dict[str, tuple[Headers, bytes, str]]:
    """Calls that are not signed as they should be: headers, body, hook."""
    now, good = ambient.now(), standard()
    return {
        "no signature": ({}, BODY, "deploy"),
        "other body": (good, BODY + b" ", "deploy"),
        "late": (plain(at=now - 302), BODY, "deploy"),
        "early": (standard(at=now + 303), BODY, "deploy"),
        "other secret": ({"X-Hub-Signature-256": mac(BODY, b"guessed").hex()}, BODY, "deploy"),
        "other name": (good, BODY, "release"),
        "empty": ({"X-Hub-Signature-256": ""}, BODY, "deploy"),
        "broken": (good | {"webhook-signature": "v1,%%%"}, BODY, "deploy"),
        "no time": (good | {"webhook-timestamp": ""}, BODY, "deploy"),
        "other id": (good | {"webhook-id": "msg_2"}, BODY, "deploy"),
        "the first decides": (github() | {"webhook-signature": "v1,AAAA"}, BODY, "deploy"),
    }


async def test_what_is_not_signed_is_refused(rig: Rig) -> None:
    for wrong, (headers, body, name) in wrong_ones().items():
        status, said = await call(rig, headers, body, name)
        assert status == 401 and "not signed" in said, wrong
    assert await runs(rig) == []
    assert (await call(rig, standard()))[0] == 202, "nobody is locked out"


async def test_without_a_secret_nothing_is_accepted(rig: Rig) -> None:
    Vault(rig.home).drop(ADDRESS, secret_name("deploy"))
    empty = {"X-Hub-Signature-256": f"sha256={mac(BODY, b'').hex()}"}
    assert (await call(rig, github()))[0] == (await call(rig, empty))[0] == 401


async def test_a_new_secret_ends_the_old_one_at_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in rig.env().items():
        monkeypatch.setenv(name, value)
    capsys.readouterr()
    assert await asyncio.to_thread(main, ["jobs", "secret", "deploy"]) == 0
    fresh = capsys.readouterr().out.strip()
    assert (await call(rig, standard()))[0] == 401
    rig.model.script(Say("with the new one"))
    signed = f"sha256={mac(BODY, fresh.encode()).hex()}"
    assert (await call(rig, {"X-Hub-Signature-256": signed}))[0] == 202
    await rig.shows("with the new one")
    assert await asyncio.to_thread(main, ["jobs", "secret", "No Name"]) == 2


async def test_what_cannot_be_taken(rig: Rig) -> None:
    large = b"x" * (1 << 20) + b"x"
    assert (await call(rig, plain(large), large))[0] == 413
    wild = b"\xff\xfe"
    assert (await call(rig, plain(wild), wild))[0] == 400
    assert (await call(rig, standard(), _endless()))[0] == 413
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{rig.url}hooks/deploy") as answer,
    ):
        assert answer.status == 405
    Vault(rig.home).keep(ADDRESS, secret_name("other"), SECRET)
    status, said = await call(rig, github(), name="other")
    assert status == 404 and "No job has the hook other" in said
    assert await runs(rig) == []


async def _endless() -> AsyncIterator[bytes]:
    """A body without a length, that goes on after the answer."""
    for _ in range(20):
        yield b"x" * (1 << 16)


async def test_a_call_of_a_paused_job_is_on_record(rig: Rig) -> None:
    await book(rig).pause("deploy")
    status, said = await call(rig, standard())
    assert status == 202 and json.loads(said)["state"] == "skipped"
    (run,) = await runs(rig)
    assert (run.state, run.reason) == ("skipped", "paused")


async def test_many_calls_wait_and_more_are_told_to_come_later(rig: Rig) -> None:
    rig.model.script(Hang())
    found = [(await call(rig, standard(str(n))))[0] for n in range(22)]
    assert found == [202] * 20 + [503] * 2


async def test_cut_off_after_the_call_it_is_one_run(rig: Rig) -> None:
    rig.model.script(*[Say("deployed, as called")] * 4)
    headers = standard("kept")
    for _ in range(2):
        assert (await call(rig, headers))[0] == 202
        await rig.crash()
        await rig.start()
    assert (await call(rig, headers))[0] == 202
    await rig.shows("deployed, as called")
    await settled(rig, "done")
    assert len(await runs(rig)) == 1


@pytest.mark.slow
async def test_killed_in_the_middle_it_is_one_run(tmp_path: Path) -> None:
    """kill -9 at any moment after the call, the caller calls again, as all of them do."""
    model = ModelServer("sk-fake-key-of-a-provider")
    where = Rig.where().id
    async with TelegramServer(token=BOT) as telegram:
        world = World(tmp_path, telegram, model)
        world.model_url = await model.start()
        prepare(tmp_path / "home", where)
        env = {"TURNKEEPER_HOME": str(tmp_path / "home")}
        code, said = await world.command("jobs", "apply", **env)
        assert code == 0 and said.startswith("Made: deploy")
        headers, answers = standard("kept"), list[int]()
        try:
            for life in range(3):
                model.script(Say("deployed, as called"))
                run = await world.start(**env)
                await run.ready()
                async with aiohttp.ClientSession() as session:
                    url = f"{run.url}hooks/deploy"
                    async with session.post(url, data=BODY, headers=headers) as answer:
                        answers.append(answer.status)
                if life == 2:
                    await telegram.wait_text(PERSON, "deployed, as called", START)
                await run.end(signal.SIGKILL if life < 2 else signal.SIGTERM)
            told = [m for m in telegram.chats[PERSON] if "deployed, as called" in m["text"]]
            assert answers == [202] * 3 and len(told) == 1
        finally:
            for run in world.runs:
                await run.end(signal.SIGKILL)
            await model.close()
