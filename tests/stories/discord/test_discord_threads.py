"""A task in a server lives in a thread of its own, made once from the message that asks for it."""

import asyncio

import pytest

from gateway.texts import say
from tests.fakes.discord_server import labels, text_of
from tests.fakes.model_server import Call, Say
from tests.stories.discord_rig import (
    CHANNEL,
    FRIEND,
    PERSON,
    STRANGER,
    DiscordRig,
)
from tests.stories.rig import Json, write

LONG = "@bot find the three cheapest hosts in Europe and compare what they cost a month"


async def test_a_mention_opens_a_thread_in_which_the_task_goes_on(rig: DiscordRig) -> None:
    await rig.start()
    task = (await rig.discord.say(CHANNEL, LONG, PERSON))["id"]
    await rig.discord.shows(task, "ack [U11] find the three")
    assert rig.discord.titles == {task: "find the three cheapest hosts in Europe and compare what…"}
    await rig.discord.say(task, "@bot and in Asia?", FRIEND)
    await rig.discord.shows(task, "ack [U12] and in Asia?")
    other = (await rig.discord.say(CHANNEL, "@bot something else", PERSON))["id"]
    await rig.discord.shows(other, "ack [U11] something else")
    await rig.quiet()
    assert rig.seen(role="user") == ["[U11] something else"], "another task knows nothing of it"
    assert rig.read(CHANNEL) == [] and set(rig.discord.titles) == {task, other}


async def test_what_is_chosen_in_a_channel_holds_for_its_new_tasks(rig: DiscordRig) -> None:
    await rig.start()
    await rig.discord.command(CHANNEL, "plan", PERSON, "on")
    await rig.discord.shows(CHANNEL, "I show you plans")
    await rig.quiet()
    await rig.crash()
    await rig.start()
    task = (await rig.discord.say(CHANNEL, "@bot hello", FRIEND))["id"]
    await rig.discord.shows(task, "hello")
    await rig.discord.command(task, "plan", FRIEND)
    await rig.discord.shows(task, "I show you plans")


async def test_all_of_a_task_stands_in_its_thread(rig: DiscordRig) -> None:
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start()
    task = (await rig.discord.say(CHANNEL, "@bot write it", PERSON))["id"]
    card = await rig.carded(task)
    await rig.quiet()
    await rig.crash()
    await rig.discord.wait(lambda: not rig.discord.gateway.connected)
    await rig.start()
    foreign = await rig.discord.press(card, "Approve once", STRANGER)
    assert "admin" in (await rig.discord.told(foreign)).lower()
    await rig.discord.press(card, "Approve once", PERSON)
    await rig.discord.shows(task, "written")
    await rig.quiet()
    assert labels(card) == [] and "Approved once" in text_of(card)
    assert len(rig.discord.made("open")) == 1, "after a restart the thread is found"


async def test_without_the_permission_a_task_lives_in_replies(rig: DiscordRig) -> None:
    rig.discord.threads_allowed = False
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start()
    task = (await rig.discord.say(CHANNEL, "@bot write it", PERSON))["id"]
    card = await rig.carded(CHANNEL)
    assert card["message_reference"]["message_id"] == task
    await rig.quiet()
    await rig.crash()
    await rig.discord.wait(lambda: not rig.discord.gateway.connected)
    await rig.start()
    await rig.discord.press(card, "Approve once", PERSON)
    answer = await rig.discord.shows(CHANNEL, "written")
    await rig.quiet()
    assert labels(card) == [], "what stands in the channel is edited there"
    await rig.discord.say(CHANNEL, "@bot and then?", PERSON, reply_to=answer["id"])
    await rig.discord.shows(CHANNEL, "[U11] and then?")
    await rig.quiet()
    first, second = rig.seen(role="user")
    assert first == "[U11] write it" and second == "> You:\n> written\n[U11] and then?"
    asked = len(rig.discord.made("open"))
    await rig.discord.say(CHANNEL, "@bot a new one", PERSON)
    await rig.discord.shows(CHANNEL, "ack [U11] a new one")
    await rig.quiet()
    assert rig.seen(role="user") == ["[U11] a new one"]
    assert len(rig.discord.made("open")) == asked, "a channel that refuses is not asked each time"


@pytest.mark.parametrize("threads", [True, False])
@pytest.mark.parametrize("kind", ["approval", "choice", "form", "own words"])
async def test_buttons_work_where_the_message_that_asked_was_deleted(
    rig: DiscordRig, threads: bool, kind: str
) -> None:
    """No thread can be made from it, and no message replies to it."""
    rig.discord.threads_allowed = threads
    options = ', "options": ["Friday", "Sunday"]' if kind in ("choice", "own words") else ""
    asks = Call("ask_user", f'{{"question": "Which day?"{options}}}')

    def answer(body: Json) -> Say:  # it is told besides that the message was deleted
        return Say("So be it." if body["messages"][-1]["role"] == "tool" else "Never mind.")

    rig.model.script(write("a.txt") if kind == "approval" else asks, *[answer] * 3)
    await rig.start()
    gate = rig.model.gate = asyncio.Event()
    said = await rig.discord.say(CHANNEL, "@bot plan it", PERSON)
    await rig.model.wait_inflight(1)
    await rig.discord.delete(said)
    gate.set()
    label, words = {
        "approval": ("Approve once", ""), "choice": ("Friday", ""),
        "form": (say("your_answer"), "Monday"), "own words": (say("something_else"), "Monday"),
    }[kind]  # fmt: skip
    card = await rig.carded(CHANNEL, label)
    await rig.quiet()
    if words:
        await rig.discord.fill_in(card, label, words, PERSON)
    else:
        await rig.discord.press(card, label, PERSON)
    await rig.discord.shows(CHANNEL, "So be it.")
    await rig.quiet()
    assert labels(card) == []


@pytest.mark.parametrize("how", ["made", "answer lost"])
async def test_killed_between_the_thread_and_the_answer(rig: DiscordRig, how: str) -> None:
    await rig.start()
    if how == "made":
        rig.discord.hold("send")
    else:
        rig.discord.drop("open")
    task = (await rig.discord.say(CHANNEL, "@bot hello", PERSON))["id"]
    await rig.discord.wait(lambda: task in rig.discord.titles)
    if how == "made":
        await rig.discord.wait(lambda: rig.discord.made("send"))
    await rig.crash()
    await rig.discord.wait(lambda: not rig.discord.gateway.connected)
    if how == "made":
        rig.discord.release("send")
    await rig.start()
    await rig.discord.shows(task, "ack [U11] hello")
    await rig.quiet()
    assert len(rig.discord.made("open")) == 1, "it was looked for, and found"
    assert len(rig.model.requests) == 1 and rig.read(CHANNEL) == []


async def test_what_it_began_with_is_gone(rig: DiscordRig) -> None:
    rig.model.gate = asyncio.Event()
    await rig.start()
    asked = await rig.discord.say(CHANNEL, "@bot hello", PERSON)
    await rig.model.wait_inflight(1)
    await rig.discord.delete(asked)
    rig.model.gate.set()
    await rig.discord.shows(CHANNEL, "ack [U11] hello")
    await rig.quiet()
    assert rig.discord.made("open") == []
