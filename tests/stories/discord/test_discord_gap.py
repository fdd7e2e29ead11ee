"""What was said while nobody listened is read back: one turn for each word that has no answer yet,
none for the others."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.fakes.discord_gateway import INVALID
from tests.stories.discord_rig import CHANNEL, DM, FRIEND, PERSON, DiscordRig


async def _forgotten(rig: DiscordRig) -> None:
    """The process was down until Discord forgot its session."""
    await rig.crash()
    await rig.discord.wait(lambda: not rig.discord.gateway.connected)
    rig.discord.gateway.sessions.clear()


async def _refused(rig: DiscordRig) -> None:
    """Discord ended the session while the process ran."""
    await rig.discord.gateway.hang_up(INVALID, resumable=False)


@pytest.mark.parametrize("gap", [_forgotten, _refused])
async def test_what_was_said_in_a_gap_is_answered_once(
    rig: DiscordRig, gap: Callable[[DiscordRig], Awaitable[Any]]
) -> None:
    await rig.start()
    await rig.discord.say(DM, "before", PERSON)
    await rig.discord.shows(DM, "ack before")
    task = (await rig.discord.say(CHANNEL, "@bot a task", PERSON))["id"]
    await rig.discord.shows(task, "ack [U11] a task")
    await rig.quiet()
    await gap(rig)
    await rig.discord.say(DM, "meanwhile", PERSON)
    await rig.discord.say(DM, "and more", PERSON)
    await rig.discord.say(task, "@bot go on", FRIEND)
    await rig.discord.say(task, "not for the bot", FRIEND)
    if gap is _forgotten:
        await rig.start()
    await rig.discord.wait(lambda: rig.discord.gateway.connected)
    await rig.discord.say(DM, "live again", PERSON)
    await rig.discord.shows(DM, "ack live again")
    await rig.discord.shows(task, "ack [U12] go on")
    await rig.quiet()
    assert rig.read() == ["ack before", "ack meanwhile", "ack and more", "ack live again"]
    assert rig.read(task) == ["ack [U11] a task", "ack [U12] go on"]
    asked = {
        (call.path.split("/")[-2], call.query["limit"])
        for call in rig.discord.made("history")
        if "after" in call.query
    }
    assert asked == {(DM, "100"), (task, "100"), (CHANNEL, "100")}


async def test_what_is_known_already_is_no_second_turn(rig: DiscordRig) -> None:
    """As after a crash within the second in which the file was not written."""
    await rig.start()
    await rig.discord.say(DM, "one", PERSON)
    await rig.discord.shows(DM, "ack one")
    await rig.quiet()
    place = (rig.home / "discord.json").read_bytes()
    await rig.discord.say(DM, "two", PERSON)
    await rig.discord.shows(DM, "ack two")
    await rig.quiet()
    await _forgotten(rig)
    (rig.home / "discord.json").write_bytes(place)
    await rig.discord.say(DM, "three", PERSON)
    await rig.start()
    await rig.discord.shows(DM, "ack three")
    await rig.quiet()
    assert rig.read() == ["ack one", "ack two", "ack three"]
    assert rig.discord.made("history") and len(rig.model.requests) == 3


async def test_a_channel_that_is_gone_holds_nothing_up(rig: DiscordRig) -> None:
    await rig.start()
    task = await rig.discord.say(CHANNEL, "@bot a task", PERSON)
    await rig.discord.shows(task["id"], "ack [U11] a task")
    await rig.discord.say(DM, "before", PERSON)
    await rig.discord.shows(DM, "ack before")
    await rig.quiet()
    await _forgotten(rig)
    del rig.discord.threads[task["id"]]
    await rig.discord.say(DM, "meanwhile", PERSON)
    await rig.start()
    await rig.discord.shows(DM, "ack meanwhile")
    await rig.quiet()
    assert any(call.status == 404 for call in rig.discord.made("history"))


async def test_after_a_resume_nothing_is_read_back(rig: DiscordRig) -> None:
    await rig.start()
    await rig.discord.say(DM, "before", PERSON)
    await rig.discord.shows(DM, "ack before")
    await rig.quiet()
    await rig.crash()
    await rig.discord.wait(lambda: not rig.discord.gateway.connected)
    await rig.discord.say(DM, "meanwhile", PERSON)
    await rig.start()
    await rig.discord.shows(DM, "ack meanwhile")
    await rig.quiet()
    assert rig.discord.made("history") == []
