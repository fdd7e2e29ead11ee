"""Chats that put the agent out: their jobs pause, their owners hear of it in private, and what a
chat refused stands in the history."""

from msgspec.structs import replace

from agent_core import ambient
from tests.fakes.model_server import Say
from tests.stories.discord_rig import CHANNEL, DiscordRig
from tests.stories.discord_rig import DM as DISCORD_DM
from tests.stories.discord_rig import PERSON as DISCORDER
from tests.stories.jobs_rig import TITLE, Shifted, fire, jobs_of, make, only, schedule, settled
from tests.stories.rig import FRIEND, GROUP, PATIENCE, PERSON, Rig
from tests.stories.slack_rig import DEV, DM, SlackRig

LOST = "I can no longer write in the chat of the job Open incidents"


async def paused(rig: Rig) -> None:
    async with ambient.limit(PATIENCE):
        while (await only(rig)).why != "chat_gone":
            await ambient.wait(0.01)
    assert (await only(rig)).state == "paused"


async def test_a_group_that_puts_the_bot_out_pauses_its_jobs(rig: Rig, clock: Shifted) -> None:
    await rig.start()
    rig.model.script(Say("hello"))
    rig.telegram.say(PERSON, "hi")
    await rig.shows("hello")
    await make(rig, GROUP)
    update = rig.telegram.put_out(GROUP, "kicked")
    word = await rig.shows(LOST)
    assert TITLE in word["text"] and "/jobs resume" in word["text"]
    await paused(rig)
    rig.telegram.redeliver(update)
    rig.telegram.put_out(-999, "left")
    rig.telegram.say(PERSON, "/whoami")
    await rig.shows("telegram:")
    await rig.quiet()
    assert sum(LOST in text for text in rig.said()) == 1
    stranger = rig.where(-999)
    assert await rig.store.summary(stranger.id) is None, "no conversation is made of it"


async def test_a_bot_that_may_write_again_or_is_admin_pauses_nothing(rig: Rig) -> None:
    await rig.start()
    await make(rig, GROUP)
    for status in ("administrator", "member"):
        rig.telegram.put_out(GROUP, status)
    rig.telegram.say(PERSON, "/whoami")
    await rig.shows("telegram:")
    await rig.quiet()
    assert (await only(rig)).state == "active"


async def test_a_refused_report_is_told_and_in_the_history(rig: Rig, clock: Shifted) -> None:
    await rig.start()
    rig.model.script(Say("hello"))
    rig.telegram.say(PERSON, "hi")
    await rig.shows("hello")
    await make(rig, GROUP)
    rig.telegram.blocked.add(GROUP)
    rig.model.script(Say("seven are open"))
    await fire(rig, clock)
    await rig.shows(LOST)
    await paused(rig)
    run = await settled(rig, "done")
    assert [(one.to, "Forbidden" in one.why) for one in run.delivered] == [("here", True)]


async def test_where_a_report_was_brought_its_refusal_counts(rig: Rig, clock: Shifted) -> None:
    await rig.start()
    for person in (PERSON, FRIEND):
        rig.model.script(Say("hello"))
        rig.telegram.say(person, "hi")
        await rig.shows("hello", person)
    job = await make(rig)
    there = rig.where(FRIEND).id
    after = replace(job, deliver=("here", there), version=ambient.new_id())
    assert await jobs_of(rig).store.commit(job, after, ())
    rig.telegram.blocked.add(FRIEND)
    rig.model.script(Say("seven are open"))
    await fire(rig, clock)
    await rig.shows("seven are open")
    async with ambient.limit(PATIENCE):
        while not any(one.why for one in (await settled(rig, "done")).delivered):
            await ambient.wait(0.01)
    run = await settled(rig, "done")
    assert {one.to: "Forbidden" in one.why for one in run.delivered} == {"here": False, there: True}
    assert (await only(rig)).state == "active", "its own chat has it"


async def test_slack_tells_of_a_channel_that_is_archived(slack: SlackRig) -> None:
    await slack.start()
    slack.model.script(Say("hello"))
    slack.slack.say(DM, "hi")
    await slack.shows("hello")
    slack.model.script(schedule(), Say("It stands."))
    slack.slack.mention(DEV, "every day at 9")
    slack.slack.press(await slack.asks(DEV), "Confirm")
    await slack.shows("It stands.", DEV)
    gone = {"type": "member_left_channel", "user": "U0EVE", "channel": DEV}
    slack.slack.event(gone)
    slack.slack.event({"type": "channel_archive", "channel": DEV, "user": "U0ANN"})
    await slack.shows(LOST)
    await paused(slack)


async def test_slack_refuses_a_report(slack: SlackRig, clock: Shifted) -> None:
    await slack.start()
    slack.model.script(Say("hello"))
    slack.slack.say(DM, "hi")
    await slack.shows("hello")
    slack.model.script(schedule(), Say("It stands."))
    slack.slack.mention(DEV, "every day at 9")
    slack.slack.press(await slack.asks(DEV), "Confirm")
    await slack.shows("It stands.", DEV)
    await slack.quiet()
    slack.slack.fail("chat.postMessage", error="not_in_channel")
    slack.model.script(Say("seven are open"))
    await fire(slack, clock)
    await slack.shows(LOST)
    await paused(slack)
    run = await settled(slack, "done")
    assert ["not_in_channel" in one.why for one in run.delivered] == [True]


async def test_discord_refuses_a_report(discord: DiscordRig, clock: Shifted) -> None:
    await discord.start()
    discord.model.script(Say("hello"))
    await discord.discord.say(DISCORD_DM, "hi", DISCORDER)
    await discord.discord.shows(DISCORD_DM, "hello")
    discord.model.script(schedule(), Say("It stands."))
    task = (await discord.discord.say(CHANNEL, "@bot every day at 9", DISCORDER))["id"]
    await discord.discord.press(await discord.carded(task, "Confirm"), "Confirm", DISCORDER)
    await discord.discord.shows(task, "It stands.")
    await discord.quiet()
    discord.discord.fail("send", 403, code=50001)
    discord.model.script(Say("seven are open"))
    await fire(discord, clock)
    await discord.discord.shows(DISCORD_DM, LOST)
    await paused(discord)
    run = await settled(discord, "done")
    assert [bool(one.why) for one in run.delivered] == [True]
