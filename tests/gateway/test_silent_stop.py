"""A stop while a platform says nothing to a send: it is not waited for as for a running turn, and
what may have arrived is not sent again without a word."""

import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.model_server import ModelServer, Say
from tests.gateway.process import KEY, PERSON, peopled
from tests.stories.discord_slack_process import ANN, DM, PRIVATE, SOON, THREAD, Chats

TWICE = "Possibly sent twice"
PATIENCE = 15.0
"""Seconds in which it stops, on a busy machine; running turns get 20."""


@pytest.fixture
async def chats(tmp_path: Path) -> AsyncIterator[Chats]:
    model = ModelServer(KEY)
    made = Chats(tmp_path, model)
    made.slowly = False
    made.model_url = await model.start()
    async with made.discord, made.slack:
        yield made
        for run in made.runs:
            await run.end(signal.SIGKILL)
        await model.close()


def check(shown: list[str], words: str) -> None:
    """It stands there once, or with a label."""
    said = [one for one in shown if words in one]
    assert said
    assert sum(TWICE not in one for one in said) <= 1


@pytest.mark.parametrize("arrives", [True, False])
async def test_a_stop_waits_little_for_a_silent_telegram(tmp_path: Path, arrives: bool) -> None:
    async with peopled(tmp_path) as world:
        world.model.script(Say("only once"))
        run = await world.start()
        (world.telegram.hold_answers if arrives else world.telegram.hold)("sendMessage")
        world.telegram.say(PERSON, "hello")
        await world.telegram.wait_calls("sendMessage", 1, SOON)
        began = time.monotonic()
        assert await run.end() == 0
        assert time.monotonic() - began < PATIENCE
        world.telegram.release("sendMessage")
        await world.start()
        await world.telegram.wait_text(PERSON, TWICE, SOON)
        check([one["text"] for one in world.telegram.chats[PERSON]], "only once")


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("platform", ["discord", "slack"])
async def test_a_stop_waits_little_for_a_silent_platform(
    chats: Chats, platform: str, arrives: bool
) -> None:
    run = await chats.live()
    server = chats.discord if platform == "discord" else chats.slack
    held = ("send",) if platform == "discord" else ("chat.postMessage", "chat.startStream")
    for method in held:
        (server.hold_answers if arrives else server.hold)(method)
    if platform == "discord":
        await chats.discord.say(DM, "tell me 1", ANN)
        await chats.discord.wait(lambda: bool(chats.discord.made("send")), SOON)
    else:
        chats.slack.say(PRIVATE, "tell me 1", thread=THREAD)
        await chats.slack.wait(lambda: any(map(chats.slack.made, held)), SOON)
    began = time.monotonic()
    assert await run.end() == 0
    assert time.monotonic() - began < PATIENCE
    for method in held:
        server.release(method)
    await chats.live()
    shown = chats.in_discord if platform == "discord" else chats.in_slack
    await server.wait(lambda: any("The end." in one for one in shown()), SOON)
    check(shown(), "Number 1:")
