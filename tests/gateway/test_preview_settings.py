"""What is started again for who looks at an app, and where each call is to be asked about."""

import asyncio

import aiohttp
import pytest

from gateway.wiring.agent_default import TurnkeeperAgent
from tests.fakes.model_server import Slow
from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.ports import free_port
from tests.fakes.waiting import until
from tests.stories.rig import PERSON, Rig


@NEEDS_BWRAP
@pytest.mark.parametrize("asks", ["off", "on"])
async def test_nothing_is_started_again_where_each_call_is_asked_about(asks: str, rig: Rig) -> None:
    await rig.start(SANDBOX_PROVIDER="bwrap", PERMISSION_ASK_ALL=asks)
    await until(lambda: rig.log.named("sandbox_checked"))
    agent, place = rig.host.services.agent, rig.workspace()
    assert isinstance(agent, TurnkeeperAgent)
    await asyncio.to_thread(place.mkdir, parents=True)
    link = await agent._preview.open(place, free_port(), "touch started")
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as person:
        async with person.post(link) as answer:
            assert answer.status == 502
            told = "This was stopped" in await answer.text()
    assert (place / "started").exists() == (asks == "off")
    assert told == (asks == "on")


@NEEDS_BWRAP
async def test_a_stop_is_final_for_what_runs_in_the_conversation(rig: Rig) -> None:
    rig.model.script(Slow(0.02, "word " * 2_000))
    await rig.start(SANDBOX_PROVIDER="bwrap")
    await until(lambda: rig.log.named("sandbox_checked"))
    agent, place = rig.host.services.agent, rig.workspace()
    assert isinstance(agent, TurnkeeperAgent)
    await asyncio.to_thread(place.mkdir, parents=True)
    link = await agent._preview.open(place, free_port(), "touch started")
    rig.telegram.say(PERSON, "go")
    await rig.until(lambda: rig.host.sessions)
    await rig.until(lambda: rig.model.requests)
    rig.telegram.say(PERSON, "/stop")
    await rig.quiet()
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as person:
        async with person.post(link) as answer:
            assert answer.status == 502 and "Ask in the chat" in await answer.text()
    assert not (place / "started").exists()
