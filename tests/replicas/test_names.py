"""One living process for each REPLICA_ID: real gateways over one Redis."""

import asyncio
import signal

import pytest

from tests.fakes.model_server import Say
from tests.gateway.process import PERSON, START
from tests.replicas.conftest import Pair

RESTART = 5.0
"""Seconds after a kill in which a message is answered."""


@pytest.mark.slow
async def test_a_second_living_process_is_refused(pair: Pair) -> None:
    one, other, redis = pair
    named = {"REDIS_URL": redis.url, "REPLICA_ID": "same"}
    first = await one.start(**named)
    code, said = await other.command("run", **named)
    assert code == 2
    assert "REPLICA_ID=same" in said and "name of its own" in said
    assert await first.end() == 0
    await other.start(**named)


@pytest.mark.slow
async def test_a_restart_after_a_kill_answers_in_time(pair: Pair) -> None:
    one, _, redis = pair
    named = {"REDIS_URL": redis.url, "REPLICA_ID": "same"}
    first = await one.start(**named)
    one.model.script(Say("here again"))
    await first.end(signal.SIGKILL)
    loop = asyncio.get_running_loop()
    killed = loop.time()
    one.telegram.say(PERSON, "are you there?")
    await one.start(**named)
    await one.telegram.wait_text(PERSON, "here again", START)
    assert loop.time() - killed < RESTART


@pytest.mark.slow
async def test_one_that_stood_still_ends_when_its_name_was_taken(pair: Pair) -> None:
    one, other, redis = pair
    named = {"REDIS_URL": redis.url, "REPLICA_ID": "same"}
    first = await one.start(**named)
    first.signal(signal.SIGSTOP)
    await other.start(**named)
    first.signal(signal.SIGCONT)
    assert await first.ended() == 2
    assert "REPLICA_ID=same" in first.log and "stood still" in first.log
