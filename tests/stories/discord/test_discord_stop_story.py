"""The button that stops a turn in Discord: below what grows, and below tools that run."""

import json

from gateway.texts import say
from tests.fakes.discord_server import labels, text_of
from tests.fakes.model_server import Call, Slow
from tests.stories.discord_rig import CHANNEL, FRIEND, PERSON, DiscordRig


async def test_who_asked_stops_what_grows_and_nobody_else(rig: DiscordRig) -> None:
    discord = rig.discord
    rig.model.script(Slow(0.02, "word " * 2000))
    await rig.start()
    asked = await discord.say(CHANNEL, "@bot count", PERSON)
    thread = asked["id"]
    await discord.wait(lambda: any("Stop" in labels(one) for one in discord.chats[thread]))
    (answer,) = discord.chats[thread]
    told = await discord.told(await discord.press(answer, "Stop", FRIEND))
    assert told == say("stop_not_yours", "") and "Stop" in labels(answer)
    await discord.press(answer, "Stop", PERSON)
    await discord.shows(thread, "Stopped here.")
    await rig.quiet()
    assert "word word" in text_of(answer) and labels(answer) == []


async def test_a_tool_is_stopped_and_a_press_that_comes_late_does_nothing(
    rig: DiscordRig,
) -> None:
    discord = rig.discord
    rig.model.script(Call("run_command", json.dumps({"command": "sleep 60"})))
    await rig.start()
    asked = await discord.say(CHANNEL, "@bot wait", PERSON)
    thread = asked["id"]
    await discord.press(await rig.carded(thread), "Approve once", PERSON)
    await discord.wait(lambda: any("Stop" in labels(one) for one in discord.chats[thread]))
    running = next(one for one in discord.chats[thread] if "Stop" in labels(one))
    old = json.loads(json.dumps(running))
    await discord.press(running, "Stop", PERSON)
    await rig.quiet()
    assert labels(running) == [] and "sleep 60" in text_of(running)
    before = len(discord.chats[thread])
    late = await discord.press(old, "Stop", PERSON)
    await discord.wait(lambda: late in discord.answers)
    await rig.quiet()
    await discord.say(thread, "@bot hello", PERSON)
    await discord.shows(thread, "hello")
    await rig.quiet()
    assert len(discord.chats[thread]) == before + 1
