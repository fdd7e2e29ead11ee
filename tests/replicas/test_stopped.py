"""A gateway that stands still for longer than its lease lasts, and wakes up: real processes."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.contracts.redis_server import redis_server
from tests.fakes.model_server import Call, Say
from tests.gateway.process import PERSON, START, World, peopled

LEASE = 30.0
AFTER = 8.0
"""Seconds in which who woke up could still do harm."""


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_who_stood_still_past_its_lease_begins_nothing(tmp_path: Path) -> None:
    redis = redis_server(tmp_path)
    first, second = tmp_path / "one", tmp_path / "two"
    first.mkdir()
    second.mkdir()
    try:
        async with peopled(first) as one:
            other = World(second, one.telegram, one.model)
            other.model_url, model = one.model_url, one.model
            try:
                stopped = await one.start(REDIS_URL=redis.url, REPLICA_ID="one")

                def hold(_: object) -> Say:
                    model.gate = asyncio.Event()
                    return Say("there is nothing")

                model.script(Call("list_files", "{}"), hold, Say("there is nothing"), Say("well"))
                one.telegram.say(PERSON, "what is there?")
                async with asyncio.timeout(START):
                    while model.gate is None:
                        model.changed.clear()
                        await model.changed.wait()
                stopped.signal(signal.SIGSTOP)
                await other.start(REDIS_URL=redis.url, REPLICA_ID="two")
                gate, model.gate = model.gate, None
                gate.set()  # the answer lies there for who stands still
                await one.telegram.wait_text(PERSON, "there is nothing", LEASE + 20.0)
                asked = len(model.requests)
                stopped.signal(signal.SIGCONT)
                await asyncio.sleep(AFTER)
                assert len(model.requests) == asked, "who woke up asks no model"
                answers = [m for m in one.telegram.chats[PERSON] if "nothing" in m["text"]]
                labelled = [m for m in answers if "Possibly sent twice" in m["text"]]
                assert len(answers) - len(labelled) == 1 and len(labelled) <= 1
                one.telegram.say(PERSON, "and now?")
                await one.telegram.wait_text(PERSON, "well", START)
                assert one.telegram.violations == []
            finally:
                for run in other.runs:
                    await run.end(signal.SIGKILL)
    finally:
        redis.end()
