"""A gateway as a process of its own that is killed while it says something in Discord or Slack: what
the platform had taken is not said again, and the next life goes on with it."""

import asyncio
import random
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.model_server import ModelServer
from tests.gateway.process import KEY
from tests.stories.discord_slack_process import ANN, DEV, DM, PRIVATE, THREAD, Chats

TWICE = "Possibly sent twice"
NUMBER = re.compile(r"Number (\d+): ")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Chats]:
    model = ModelServer(KEY)
    made = Chats(tmp_path, model)
    made.model_url = await model.start()
    async with made.discord, made.slack:
        try:
            yield made
            assert made.discord.violations == made.slack.violations == []
        finally:
            for run in made.runs:
                await run.end(signal.SIGKILL)
            await model.close()


async def test_what_was_taken_when_the_gateway_died_is_not_sent_again(world: Chats) -> None:
    """The platforms had it, and the gateway was killed before it heard of that: a message in
    Discord, one in a channel of Slack, the beginning of a stream in a thread. Meanwhile people
    write on."""
    run = await world.live()
    world.discord.hold_answers("send")
    for method in ("chat.postMessage", "chat.startStream"):
        world.slack.hold_answers(method)
    await world.discord.say(DM, "tell me 1", ANN)
    _, event = world.slack.mention(DEV, "tell me 2")
    world.slack.say(PRIVATE, "tell me 3", thread=THREAD)
    await world.discord_shows("Number 1")
    await world.slack_shows("Number 2", DEV)
    await world.slack_shows("Number 3")
    await run.end(signal.SIGKILL)
    world.slowly = False
    world.discord.release("send")
    for method in ("chat.postMessage", "chat.startStream"):
        world.slack.release(method)
    await world.discord.say(DM, "tell me 4", ANN)
    world.slack.mention(DEV, "tell me 5", thread=event["event"]["ts"])
    world.slack.say(PRIVATE, "tell me 6", thread=THREAD)
    await world.live()
    await world.discord_shows("Number 4")
    await world.slack_shows("Number 5", DEV)
    await world.slack_shows("Number 6")
    for said, numbers in zip(world.shown().values(), ("14", "25", "36"), strict=True):
        whole = "".join(said)
        assert NUMBER.findall(whole) == list(numbers) and TWICE not in whole
        assert whole.count("The end.") == 2
    states = [one.get("streaming_state", "") for one in world.slack.channels[PRIVATE]]
    assert "in_progress" not in states


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_killed_at_any_moment_nothing_is_said_twice(world: Chats) -> None:
    """Nor is anything lost: both platforms tell again, or can be read back. A send to Slack that
    was cut off before it arrived is labelled: it cannot be told from one that is still on its
    way."""
    chance, times = random.Random(7), 25
    labels = {"Discord": 0}
    run = await world.live()
    thread = ""
    for n in range(times):
        world.slowly = n > 0 and chance.random() < 0.7
        await world.discord.say(DM, f"tell me {n}", ANN)
        world.slack.say(PRIVATE, f"tell me {n}", thread=THREAD)
        _, event = world.slack.mention(DEV, f"tell me {n}", thread=thread)
        thread = thread or event["event"]["ts"]
        if n:
            await asyncio.sleep(chance.random() * 4)  # a kill comes at any time
            await run.end(signal.SIGKILL)
            world.slowly = False
            run = await world.live()
        await world.all_show("The end.", n + 1)
    for where, said in world.shown().items():
        whole = "".join(said)
        assert NUMBER.findall(whole) == [str(n) for n in range(times)], where
        assert whole.count(TWICE) <= labels.get(where, times // 5), where
