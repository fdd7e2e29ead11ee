"""A hook that talks: a signed call from outside begins a turn in a conversation, which knows what was
said there, is answered like any other, and comes once."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from agent_core.context.data_marks import BEGINS, ENDS, make_seal
from gateway.features.jobs.operator.jobfile import Faulty
from gateway.store.sqlite import SqliteStore
from gateway.texts import say
from tests.fakes.model_server import Hang, Say
from tests.stories.hooks_rig import BODY, call, github, give, standard
from tests.stories.jobs_rig import jobs_of
from tests.stories.rig import ADMIN, GROUP, PERSON, Rig, token, write

JOB = """\
[alerts]
title = "Alerts"
prompt = "Say in a line whether somebody must get up."
hook = "deploy"
talk = true
where = "{where}"
"""


async def open_rig(rig: Rig, where: str = "", **more: str) -> Rig:
    rig.home.mkdir()
    (rig.home / "jobs.toml").write_text(JOB.replace("{where}", where or rig.where().id))
    give(rig.home, "standard")
    await rig.start(**more)
    await rig.until(lambda: rig.log.named("jobs_file_applied"))
    return rig


async def test_a_call_begins_a_turn_that_knows_the_conversation(rig: Rig) -> None:
    rig.model.script(Say("Noted."), Say("Nobody must."), Say("As I said."))
    await open_rig(rig)
    rig.telegram.say(PERSON, "The night watch is Ben.")
    await rig.shows("Noted.")
    status, said = await call(rig, standard())
    assert status == 202 and '"state":"fired"' in said
    await rig.shows("Nobody must.")
    asked, body = rig.sent(role="user"), BODY.decode()
    assert "The night watch is Ben." in asked[0]
    begins, ends = BEGINS.format(seal=make_seal(body)), ENDS.format(seal=make_seal(body))
    assert f"{begins}\n{body}\n{ends}\n\nSay in a line whether" in asked[-1]
    rig.telegram.say(PERSON, "And why?")
    await rig.shows("As I said.")
    assert any(body in text for text in rig.sent(role="user"))


async def test_the_same_call_again_says_nothing_more(rig: Rig) -> None:
    rig.model.script(Say("once"), Say("twice"))
    await open_rig(rig)
    headers = standard()
    first, second = await asyncio.gather(call(rig, headers), call(rig, headers))
    assert (first[0], second[0]) == (202, 202)
    await rig.shows("once")
    assert (await call(rig, headers))[0] == 202
    await rig.quiet()
    assert not [text for text in rig.said() if "twice" in text] and len(rig.model.requests) == 1


async def test_it_waits_for_the_turn_that_runs(rig: Rig) -> None:
    rig.model.script(Hang(), Say("Nobody must."))
    await open_rig(rig)
    rig.telegram.say(PERSON, "begin")
    await rig.until(lambda: len(rig.model.requests) == 1)
    assert (await call(rig, standard()))[0] == 202
    rig.telegram.say(PERSON, "/stop")
    await rig.shows("Nobody must.")


async def test_what_it_asks_an_admin_decides(rig: Rig) -> None:
    rig.model.script(write("a.txt"), Say("written"))
    await open_rig(rig, rig.where(GROUP).id)
    assert (await call(rig, standard()))[0] == 202
    card = await rig.card(GROUP)
    assert await rig.told(rig.press(card, "Approve once", PERSON)) == say("not_yours")
    assert token(card, "Approve once")
    assert await rig.told(rig.press(card, "Approve once", ADMIN)) == ""
    await rig.shows("written", GROUP)


async def test_paused_it_says_nothing(rig: Rig) -> None:
    await open_rig(rig)
    assert await jobs_of(rig).book.pause("alerts")
    status, said = await call(rig, standard())
    assert status == 202 and "skipped" in said
    await rig.quiet()
    assert rig.model.requests == []


async def test_many_calls_wait_and_more_are_told_to_come_later(rig: Rig) -> None:
    rig.model.script(Hang())
    await open_rig(rig)
    assert (await call(rig, standard("0")))[0] == 202
    await rig.until(lambda: len(rig.model.requests) == 1)
    found = [(await call(rig, standard(str(n))))[0] for n in range(1, 23)]
    assert found[:19] == [202] * 19 and found[20:] == [503] * 2  # the first may count as waiting


async def test_github_signs_it_too(rig: Rig) -> None:
    rig.model.script(Say("Nobody must."))
    await open_rig(rig)
    give(rig.home, "github")
    assert (await call(rig, github()))[0] == 202
    assert (await call(rig, standard()))[0] == 401
    await rig.shows("Nobody must.")


@pytest.mark.parametrize(
    "line",
    ['schedule = "@hourly"', 'script = "ls"', 'deliver = ["here"]', "spend = 1", 'hook = ""'],
)
async def test_it_has_a_hook_and_a_prompt_alone(rig: Rig, line: str) -> None:
    rig.home.mkdir()
    table = JOB.replace("{where}", rig.where().id)
    if line.startswith("hook"):
        table = table.replace('hook = "deploy"\n', 'schedule = "@hourly"\n')
        line = ""
    (rig.home / "jobs.toml").write_text(f"{table}{line}\n")
    await rig.start()
    await rig.until(lambda: rig.log.named("jobs_file_refused"))
    (refused,) = rig.log.named("jobs_file_refused")
    assert say("jobs_talk_alone") in refused.__dict__["why"] and refused.__dict__["line"] == 5


async def test_talk_is_yes_or_no(rig: Rig) -> None:
    await open_rig(rig)
    (rig.home / "jobs.toml").write_text(JOB.replace("true", '"yes"'))
    with pytest.raises(Faulty, match="line 5.*talk must be true or false"):
        await rig.host.services.agent.jobs.file.apply()


def stop_at(real: Callable[..., Any], count: list[int], n: int) -> Callable[..., Any]:
    """The n-th of these writes is never made, and never over."""

    def write_or_hang(*args: object, **more: object) -> object:
        count[0] += 1
        return real(*args, **more) if count[0] != n else asyncio.Future[None]()

    return write_or_hang


@pytest.mark.parametrize(
    "n", [pytest.param(n, marks=pytest.mark.pick("killed_talk", 2)) for n in range(1, 13)]
)
async def test_killed_at_each_write_it_is_one_turn(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    """The caller calls again, as all of them do."""
    rig.model.script(*[Say("Nobody must.")] * 4)
    await open_rig(rig)
    headers, count = standard("kept"), [0]
    with monkeypatch.context() as patched:
        for name in ("put", "accept", "submit", "release"):
            real = getattr(SqliteStore, name)
            patched.setattr(SqliteStore, name, stop_at(real, count, n))
        calling = asyncio.create_task(call(rig, headers))
        await rig.until(lambda: count[0] >= n or any("Nobody" in text for text in rig.said()))
        calling.cancel()
        await rig.crash()
    await rig.start()
    assert (await call(rig, headers))[0] == 202
    await rig.shows("Nobody must.")
    await rig.quiet()
    with closing(sqlite3.connect(rig.home / "turnkeeper.db")) as store:
        assert store.execute("SELECT count(*) FROM turns").fetchone() == (1,)
