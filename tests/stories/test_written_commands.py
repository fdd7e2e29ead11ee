"""Commands as people type them: below a mention, with other spaces, by other keyboards; and words that
only look like one."""

import asyncio

import pytest

from tests.stories.discord_rig import CHANNEL, DiscordRig
from tests.stories.discord_rig import DM as DISCORD_DM
from tests.stories.discord_rig import PERSON as DISCORDER
from tests.stories.rig import GROUP, PERSON, Rig, mention
from tests.stories.slack_rig import DEV, SlackRig

pytestmark = pytest.mark.pick("written commands", 3)
STOPS = ("/stop\u00a0all", "／stop", "／ｓｔｏｐ\u3000ＡＬＬ", "/Stop\nall")
FULL = "/tmp is full, why?"


@pytest.mark.parametrize("text", STOPS)
@pytest.mark.parametrize("chat", [PERSON, GROUP])
async def test_on_telegram_it_stops(rig: Rig, chat: int, text: str) -> None:
    await rig.start()
    rig.model.gate = asyncio.Event()
    rig.telegram.say(chat, "@test_bot count", user=PERSON, **mention("@test_bot"))
    await rig.model.wait_inflight(1)
    named = f"@Test_Bot {text}" if chat == GROUP else text
    rig.telegram.say(chat, named, user=PERSON, **mention("@test_bot"))
    await rig.shows("Stopped", chat)
    await rig.quiet()
    assert len(rig.model.requests) == 1


@pytest.mark.parametrize("text", STOPS)
async def test_on_discord_it_stops(discord: DiscordRig, text: str) -> None:
    await discord.start()
    discord.model.gate = asyncio.Event()
    await discord.discord.say(DISCORD_DM, "count", DISCORDER)
    await discord.model.wait_inflight(1)
    await discord.discord.say(DISCORD_DM, f"@bot {text}", DISCORDER)
    await discord.discord.shows(DISCORD_DM, "Stopped")
    await discord.quiet()
    assert len(discord.model.requests) == 1


@pytest.mark.parametrize("text", STOPS)
@pytest.mark.parametrize("slash", [True, False])
async def test_on_slack_it_stops(slack: SlackRig, slash: bool, text: str) -> None:
    await slack.start()
    slack.model.gate = asyncio.Event()
    said, _ = slack.slack.mention(DEV, "count")
    await slack.model.wait_inflight(1)
    if slash:
        slack.slack.command(DEV, text.removeprefix("/"))
    else:
        slack.slack.mention(DEV, text, thread=said["event"]["ts"])
    await slack.shows("Stopped", DEV)
    await slack.quiet()
    assert len(slack.model.requests) == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/Mode STEER", "into account"),
        ("/memory forget\u00a0the\u00a0milk", "No entry matches"),
        ("/jobs edit\u00a01\u2003model=pro", "no such"),
        ("/permissions Drop\u00a01", "permissions drop"),
    ],
)
async def test_its_words_may_be_written_so_too(rig: Rig, text: str, shown: str) -> None:
    await rig.start()
    rig.telegram.say(PERSON, text)
    await rig.telegram.wait(lambda: bool(rig.said()))
    assert shown in rig.said()[0]


async def test_in_a_group_words_that_look_like_a_command_are_words(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(GROUP, f"@test_bot {FULL}", user=PERSON, **mention("@test_bot"))
    await rig.shows(f"] {FULL}", GROUP)


async def test_in_a_channel_of_discord_too(discord: DiscordRig) -> None:
    await discord.start()
    await discord.discord.say(CHANNEL, f"@bot {FULL}", DISCORDER)
    await discord.discord.shows(CHANNEL, f"] {FULL}")


async def test_in_a_channel_of_slack_too(slack: SlackRig) -> None:
    await slack.start()
    slack.slack.mention(DEV, FULL)
    await slack.shows(f"] {FULL}", DEV)


async def test_a_slash_command_of_slack_that_is_none_is_told(slack: SlackRig) -> None:
    await slack.start()
    slack.slack.command(DEV, "frobnicate it")
    await slack.slack.wait(lambda: slack.slack.ephemeral)
    assert "There is no command" in slack.slack.ephemeral[0]["text"]
    assert not slack.model.requests


async def test_an_own_answer_that_is_forwarded_to_a_group_calls_nobody(rig: Rig) -> None:
    await rig.start()
    origin = {"type": "user", "sender_user": rig.telegram.bot, "date": 1}
    rig.telegram.say(GROUP, "I am done.", user=PERSON, forward_origin=origin)
    rig.telegram.say(PERSON, "I am done.", forward_origin=origin)
    await rig.shows("Forwarded, by You")
    await rig.quiet()
    assert len(rig.model.requests) == 1 and not rig.said(GROUP)
