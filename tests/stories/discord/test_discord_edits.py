"""Edits of messages that began a task or gave a command: they belong to it, whatever they name now.

Words without the mention reach the bot only with Discord's intent for them."""

import asyncio

import pytest

from gateway.conversation.session import Session
from tests.fakes.discord_server import labels
from tests.fakes.model_server import Call, Say
from tests.stories.discord_rig import CHANNEL, DM, PERSON, DiscordRig


async def test_an_edit_without_the_mention_belongs_to_its_task(rig: DiscordRig) -> None:
    await rig.start(GROUP_POLICY="thread")
    said = await rig.discord.say(CHANNEL, "@bot compare the hsots", PERSON)
    await rig.discord.shows(said["id"], "ack [U11] compare the hsots")
    await rig.quiet()
    await rig.discord.change(said, "compare the hosts")
    await rig.discord.shows(said["id"], "You edited your message")
    await rig.quiet()
    offer = await rig.carded(said["id"], "Answer again")
    await rig.discord.press(offer, "Answer again", PERSON)
    await rig.discord.shows(said["id"], "ack [U11] compare the hosts")
    await rig.quiet()
    assert rig.read(CHANNEL) == []


async def test_without_threads_too(rig: DiscordRig) -> None:
    rig.discord.threads_allowed = False
    await rig.start(GROUP_POLICY="thread")
    said = await rig.discord.say(CHANNEL, "@bot compare the hsots", PERSON)
    await rig.discord.shows(CHANNEL, "ack [U11] compare the hsots")
    await rig.quiet()
    await rig.discord.change(said, "compare the hosts")
    await rig.discord.shows(CHANNEL, "You edited your message")
    await rig.quiet()


async def test_an_edited_command_is_told_where_it_was_given(rig: DiscordRig) -> None:
    await rig.start()
    for channel, named in ((DM, ""), (CHANNEL, "@bot ")):
        said = await rig.discord.say(channel, f"{named}/mode reserach", PERSON)
        await rig.discord.wait(lambda channel=channel: bool(rig.discord.chats[channel]))
        await rig.quiet()
        await rig.discord.change(said, f"{named}/mode research")
        await rig.discord.shows(channel, "An edited command is not run")
        await rig.quiet()
    assert rig.model.requests == []


async def test_words_among_people_that_are_edited_are_nobodys(rig: DiscordRig) -> None:
    await rig.start()
    task = (await rig.discord.say(CHANNEL, "@bot hello", PERSON))["id"]
    await rig.discord.shows(task, "hello")
    await rig.quiet()
    theirs = await rig.discord.say(CHANNEL, "lunch?", PERSON)
    await rig.discord.change(theirs, "lunch!")
    await rig.discord.change(theirs, "/help")
    await rig.quiet()
    assert rig.read(CHANNEL) == [] and len(rig.discord.chats[task]) == 1
    assert not any(labels(one) for one in rig.discord.chats[task])


@pytest.mark.parametrize("policy", ["mention", "thread"])
@pytest.mark.parametrize("threads", [True, False])
async def test_an_edit_that_adds_the_mention_is_a_request(
    rig: DiscordRig, policy: str, threads: bool
) -> None:
    rig.discord.threads_allowed = threads
    await rig.start(GROUP_POLICY=policy)
    said = await rig.discord.say(CHANNEL, "compare the hosts", PERSON)
    await rig.quiet()
    await rig.discord.change(said, "@bot compare the hosts")
    at = said["id"] if threads else CHANNEL
    await rig.discord.shows(at, "ack [U11] compare the hosts")
    await rig.quiet()
    await rig.discord.change(said, "compare all hosts")
    if policy == "thread":
        await rig.discord.shows(at, "You edited your message")
    await rig.quiet()
    await rig.discord.change(said, "@bot compare all hosts, please")
    await rig.discord.shows(at, "You edited your message")
    await rig.quiet()
    assert len(rig.model.requests) == 1


@pytest.mark.parametrize("keeps", [True, False])
async def test_an_edit_of_what_waits_or_runs_is_taken_up_whatever_it_names(
    rig: DiscordRig, keeps: bool
) -> None:
    rig.model.script(Call("list_files", '{"path": "."}'), Say("Compared."), Say("And listed."))
    await rig.start(GROUP_POLICY="thread")
    gate = rig.model.gate = asyncio.Event()
    said = await rig.discord.say(CHANNEL, "@bot compare the hsots", PERSON)
    await rig.model.wait_inflight(1)
    mention = "@bot " if keeps else ""
    await rig.discord.change(said, f"{mention}compare the hosts")
    session = await _session(rig, said["id"])
    await rig.until(lambda: session.state.active and session.state.active.changes)
    gate.set()
    await rig.discord.shows(said["id"], "Compared.")
    await rig.quiet()
    assert "compare the hosts" in str(rig.model.requests[1].body["messages"])
    assert rig.read(CHANNEL) == []


async def _session(rig: DiscordRig, thread: str) -> Session:
    await rig.until(lambda: any(f":{thread}" in one for one in rig.host.sessions))
    return next(one for name, one in rig.host.sessions.items() if f":{thread}" in name)
