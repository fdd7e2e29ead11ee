"""An adapter that meets a bug runs again: one odd moment does not silence its platform."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import gateway.__main__ as root
from adapters.discord.receive import DiscordReceiver
from adapters.slack.receive import SlackReceiver
from adapters.telegram.receive import TelegramReceiver
from tests.fakes.discord_server import DiscordServer
from tests.fakes.model_server import ModelServer
from tests.fakes.slack_server import SlackServer
from tests.fakes.telegram_server import TelegramServer
from tests.gateway.process import KEY, PERSON, TOKEN
from tests.stories.hours_rig import HoursRig, hurry
from tests.stories.rig import Log

PLACES = {
    "telegram": (TelegramReceiver, "_insist"),
    "discord": (DiscordReceiver, "_hand_over"),
    "slack": (SlackReceiver, "_store"),
}
"""Work of each adapter that nothing within it contains."""


@pytest.fixture
async def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HoursRig]:
    monkeypatch.setattr(root, "MIN_PAUSE", 0.05)
    model = ModelServer(KEY)
    logger = logging.getLogger("turnkeeper")
    with hurry():
        async with (
            TelegramServer(token=TOKEN) as telegram,
            DiscordServer() as server,
            SlackServer() as slack,
        ):
            made = HoursRig(tmp_path, telegram, model, await model.start())
            made.discord, made.slack, made.log = server, slack, Log()
            logger.addHandler(made.log)
            try:
                yield await made.start()
            finally:
                await made.crash()
                await model.close()
                logger.removeHandler(made.log)


async def say(rig: HoursRig, platform: str, words: str) -> None:
    match platform:
        case "telegram":
            rig.telegram.say(PERSON, words)
        case "discord":
            await rig.discord.say(f"9000{PERSON}", words, PERSON)
        case _:
            rig.slack.say("D0ANN", words)


async def answered(rig: HoursRig, platform: str, words: str) -> None:
    where = {
        "telegram": lambda: rig.telegram.chats[PERSON],
        "discord": lambda: rig.discord.chats[f"9000{PERSON}"],
        "slack": lambda: rig.slack.channels["D0ANN"],
    }[platform]
    await rig.until(lambda: any(f"ack {words}" in str(one) for one in where()))


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("platform", PLACES)
async def test_a_bug_of_an_adapter_costs_a_moment(
    rig: HoursRig, monkeypatch: pytest.MonkeyPatch, platform: str, times: int
) -> None:
    await say(rig, platform, "one")
    await answered(rig, platform, "one")
    owner, name = PLACES[platform]
    done, left = getattr(owner, name), times

    async def fail(*given: object) -> object:
        nonlocal left
        if left:
            left -= 1
            raise RuntimeError("a bug")
        return await done(*given)

    monkeypatch.setattr(owner, name, fail)
    await say(rig, platform, "two")
    await answered(rig, platform, "two")
    for other in PLACES:
        await say(rig, other, "three")
        await answered(rig, other, "three")
    assert len(rig.log.named("adapter_failed")) == times - left == times
    assert rig.host.services.counters["adapters_failed"] == times
    assert not rig._gateway._failed  # type: ignore[union-attr]
