"""A gateway that stands still for longer than its lease lasts, and wakes up: real processes."""

import asyncio
import signal

import pytest

from tests.fakes.model_server import Call, Fail, Say
from tests.gateway.process import PERSON, START, World
from tests.replicas.conftest import Pair

LEASE = 30.0
AFTER = 8.0
"""Seconds in which who woke up could still do harm."""


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_who_stood_still_past_its_lease_begins_nothing(pair: Pair) -> None:
    one, two, redis = pair
    model = one.model
    stopped = await one.start(REDIS_URL=redis.url, REPLICA_ID="one")

    def hold(_: object) -> Say:
        model.gate = asyncio.Event()
        return Say("there is nothing")

    model.script(Call("list_files", "{}"), hold, Say("there is nothing"), Say("well"))
    one.telegram.say(PERSON, "what is there?")
    await model.wait(lambda: model.gate is not None, START)
    stopped.signal(signal.SIGSTOP)
    await two.start(REDIS_URL=redis.url, REPLICA_ID="two")
    gate, model.gate = model.gate, None
    gate.set()  # the answer lies there for who stands still
    await one.telegram.wait_text(PERSON, "there is nothing", LEASE + 20.0)
    asked = len(model.requests)
    stopped.signal(signal.SIGCONT)
    await asyncio.sleep(AFTER)
    assert len(model.requests) == asked, "who woke up asks no model"
    _judge_copies(one, "there is nothing")
    one.telegram.say(PERSON, "and now?")
    await one.telegram.wait_text(PERSON, "well", START)
    assert one.telegram.violations == []


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_who_stood_still_in_a_send_has_sent_once(pair: Pair) -> None:
    """Its send is on its way when it stops; the next holder sends a copy that says so."""
    one, two, redis = pair
    stopped = await one.start(REDIS_URL=redis.url, REPLICA_ID="one")
    one.model.script(Say("there is nothing"), Say("well"))
    one.telegram.hold("sendMessage")
    one.telegram.say(PERSON, "what is there?")
    await one.telegram.wait_calls("sendMessage", 1, START)
    stopped.signal(signal.SIGSTOP)
    await two.start(REDIS_URL=redis.url, REPLICA_ID="two")
    await one.telegram.wait_calls("sendMessage", 2, LEASE + 20.0)
    one.telegram.release("sendMessage")
    await one.telegram.wait_text(PERSON, "Possibly sent twice", START)
    stopped.signal(signal.SIGCONT)
    await asyncio.sleep(AFTER)
    assert len(one.model.requests) == 1, "the answer was recorded: no model is asked again"
    assert len(one.telegram.made("sendMessage")) == 2, "who woke up sends nothing"
    _judge_copies(one, "there is nothing")
    one.telegram.say(PERSON, "and now?")
    await one.telegram.wait_text(PERSON, "well", START)
    assert one.telegram.violations == []


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("failing", [Fail(429, retry_after=5.0), Fail(503, retry_after=5.0)])
async def test_who_stood_still_before_a_retry_asks_no_model(pair: Pair, failing: Fail) -> None:
    """It stops in the pause that its provider asked for; the next holder makes that call."""
    one, two, redis = pair
    stopped = await one.start(REDIS_URL=redis.url, REPLICA_ID="one")
    one.model.script(failing, Say("there is nothing"), Say("well"))
    one.telegram.say(PERSON, "what is there?")
    await one.model.wait(lambda: one.model.requests and not one.model.inflight, START)
    stopped.signal(signal.SIGSTOP)
    await two.start(REDIS_URL=redis.url, REPLICA_ID="two")
    await one.telegram.wait_text(PERSON, "there is nothing", LEASE + 20.0)
    stopped.signal(signal.SIGCONT)
    await asyncio.sleep(AFTER)
    assert len(one.model.requests) == 2, "who woke up asks no model"
    _judge_copies(one, "there is nothing")
    one.telegram.say(PERSON, "and now?")
    await one.telegram.wait_text(PERSON, "well", START)


def _judge_copies(world: World, words: str) -> None:
    """One answer, and at most one more that says that it may be a copy."""
    answers = [m for m in world.telegram.chats[PERSON] if words in m["text"]]
    labelled = [m for m in answers if "Possibly sent twice" in m["text"]]
    assert len(answers) - len(labelled) == 1 and len(labelled) <= 1, answers
