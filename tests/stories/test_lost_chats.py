"""A chat that puts the agent out in the middle of a turn: the turn ends and costs no more, the audit
has it, and who asked hears of it in private."""

import asyncio

from tests.fakes.model_server import Call, ModelServer, Say
from tests.stories.discord_rig import CHANNEL, DiscordRig
from tests.stories.discord_rig import DM as DISCORD_DM
from tests.stories.discord_rig import PERSON as DISCORDER
from tests.stories.rig import FRIEND, GROUP, PERSON, Rig, mention
from tests.stories.slack_rig import DEV, DM, SlackRig

LOST = "I cannot write any more in a chat where you asked me something"


def hold(model: ModelServer) -> asyncio.Event:
    model.gate = asyncio.Event()
    return model.gate


async def lost(rig: Rig, asked: int) -> None:
    """The model is asked no more than that, and the audit says why."""
    await rig.until(lambda: rig.model.inflight == 0)
    await rig.until(lambda: not rig.host.sessions)
    assert len(rig.model.requests) <= asked
    (line,) = [line for line in await rig.audit() if line[1] == "chat_lost"]
    assert line[0].rpartition(":")[2] in (str(PERSON), str(DISCORDER), "U0ANN")


async def test_telegram_says_that_the_bot_was_put_out(rig: Rig) -> None:
    rig.model.script(Say("hello"), Say("never seen"))
    await rig.start()
    rig.telegram.say(PERSON, "hi, please")
    await rig.shows("hello")
    await rig.quiet()
    hold(rig.model)
    rig.telegram.say(GROUP, "@test_bot count them", user=PERSON, **mention("@test_bot"))
    await rig.model.wait_inflight(1)
    rig.telegram.blocked.add(GROUP)
    rig.telegram.put_out(-999, "kicked")
    rig.telegram.put_out(GROUP, "kicked")
    await rig.shows(LOST)
    await lost(rig, 2)
    assert sum(LOST in text for text in rig.said()) == 1


async def test_who_blocks_the_bot_stops_what_it_works_at(rig: Rig) -> None:
    await rig.start()
    hold(rig.model)
    rig.telegram.say(PERSON, "count them")
    await rig.model.wait_inflight(1)
    rig.telegram.say(FRIEND, "and mine")
    await rig.model.wait_inflight(2)
    rig.telegram.blocked.add(PERSON)
    rig.telegram.put_out(PERSON, "kicked")
    await rig.until(lambda: rig.model.inflight == 1)
    rig.model.gate.set()
    await rig.shows("and mine", FRIEND)
    await lost(rig, 2)


async def test_telegram_refuses_what_the_turn_shows(rig: Rig) -> None:
    rig.model.script(Say("hello"), Call("list_files"), Say("never seen"))
    await rig.start()
    rig.telegram.say(PERSON, "hi, please")
    await rig.shows("hello")
    await rig.quiet()
    first = hold(rig.model)
    rig.telegram.say(GROUP, "@test_bot count them", user=PERSON, **mention("@test_bot"))
    await rig.model.wait_inflight(1)
    rig.telegram.blocked.add(GROUP)
    hold(rig.model)
    first.set()
    await rig.shows(LOST)
    await lost(rig, 3)


async def test_slack_refuses_what_the_turn_shows(slack: SlackRig) -> None:
    slack.model.script(Say("hello"), Call("list_files"), Say("never seen"))
    await slack.start()
    slack.slack.say(DM, "hi, please")
    await slack.shows("hello")
    await slack.quiet()
    first = hold(slack.model)
    slack.slack.mention(DEV, "count them")
    await slack.model.wait_inflight(1)
    slack.slack.left.add(DEV)
    hold(slack.model)
    first.set()
    await slack.shows(LOST)
    await lost(slack, 3)


async def test_discord_refuses_what_the_turn_shows(discord: DiscordRig) -> None:
    discord.model.script(Say("hello"), Call("list_files"), Say("never seen"))
    await discord.start()
    await discord.discord.say(DISCORD_DM, "hi, please", DISCORDER)
    await discord.discord.shows(DISCORD_DM, "hello")
    await discord.quiet()
    first = hold(discord.model)
    await discord.discord.say(CHANNEL, "@bot count them", DISCORDER)
    await discord.model.wait_inflight(1)
    discord.discord.fail("send", 403, code=50001)
    hold(discord.model)
    first.set()
    await discord.discord.shows(DISCORD_DM, LOST)
    await lost(discord, 3)
