"""A chat that puts the agent out in the middle of a turn: the turn ends and costs no more, the audit
has it, and who asked hears of it in private."""

import asyncio
from collections.abc import Callable

import pytest

from tests.fakes.model_server import Call, ModelServer, Say
from tests.stories.discord_rig import CHANNEL, DiscordRig
from tests.stories.discord_rig import DM as DISCORD_DM
from tests.stories.discord_rig import PERSON as DISCORDER
from tests.stories.rig import FRIEND, GROUP, PATIENCE, PERSON, Rig, mention
from tests.stories.slack_rig import DEV, DM, SlackRig

DEPLOY = Call("run_command", '{"command": "make deploy"}')
LOST = "I can no longer write in a chat where you asked me something"


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


TOPIC = 5


async def meet_refusal(rig: Rig, refuse: Callable[[], None], thread: int = 0) -> None:
    """A turn in a group, where nothing can be sent any more while it runs."""
    rig.model.script(Say("hello"), Call("list_files"), Say("never seen"))
    await rig.start()
    rig.telegram.say(PERSON, "hi, please")
    await rig.shows("hello")
    await rig.quiet()
    first = hold(rig.model)
    asked = mention("@test_bot")
    rig.telegram.say(GROUP, "@test_bot count them", user=PERSON, thread=thread, **asked)
    await rig.model.wait_inflight(1)
    refuse()
    hold(rig.model)
    first.set()
    await rig.shows(LOST)
    await lost(rig, 3)


async def test_telegram_refuses_what_the_turn_shows(rig: Rig) -> None:
    await meet_refusal(rig, lambda: rig.telegram.blocked.add(GROUP))


@pytest.mark.parametrize(
    "why",
    [
        "not enough rights to send text messages to the chat",
        "have no rights to send a message",
        "have no write access to the chat",
        "need administrator rights in the channel chat",
        "CHAT_SEND_PLAIN_FORBIDDEN",
        "CHAT_RESTRICTED",
        "TOPIC_DELETED",
    ],
)
async def test_what_telegram_calls_a_chat_without_the_right_to_write(rig: Rig, why: str) -> None:
    await meet_refusal(rig, lambda: rig.telegram.refusing.update({GROUP: why}))


async def test_a_topic_is_closed_meanwhile(rig: Rig) -> None:
    await meet_refusal(rig, lambda: rig.telegram.closed.add((GROUP, TOPIC)), TOPIC)


@pytest.mark.parametrize(
    "why",
    ["not_in_channel", "restricted_action", "restricted_action_thread_locked"],
)
async def test_slack_refuses_what_the_turn_shows(slack: SlackRig, why: str) -> None:
    slack.model.script(Say("hello"), Call("list_files"), Say("never seen"))
    await slack.start()
    slack.slack.say(DM, "hi, please")
    await slack.shows("hello")
    await slack.quiet()
    first = hold(slack.model)
    slack.slack.mention(DEV, "count them")
    await slack.model.wait_inflight(1)
    if why == "not_in_channel":
        slack.slack.left.add(DEV)
    else:
        slack.slack.fail("chat.postMessage", error=why)
    hold(slack.model)
    first.set()
    await slack.shows(LOST)
    await lost(slack, 3)


@pytest.mark.parametrize("code", [50001, 50013, 50083, 160005])
async def test_discord_refuses_what_the_turn_shows(discord: DiscordRig, code: int) -> None:
    discord.model.script(Say("hello"), Call("list_files"), Say("never seen"))
    await discord.start()
    await discord.discord.say(DISCORD_DM, "hi, please", DISCORDER)
    await discord.discord.shows(DISCORD_DM, "hello")
    await discord.quiet()
    first = hold(discord.model)
    await discord.discord.say(CHANNEL, "@bot count them", DISCORDER)
    await discord.model.wait_inflight(1)
    discord.discord.fail("send", 403, code=code)
    hold(discord.model)
    first.set()
    await discord.discord.shows(DISCORD_DM, LOST)
    await lost(discord, 3)


async def wait_there(rig: Rig) -> None:
    """In the group one turn waits for a button, one is worked at, and two messages wait."""
    rig.model.script(Say("hello"), Say("hello"), DEPLOY)
    await rig.start()
    for person in (PERSON, FRIEND):
        rig.telegram.say(person, "hi, please")
        await rig.shows("hello", person)
    await rig.quiet()
    rig.telegram.say(GROUP, "@test_bot deploy it", user=PERSON, **mention("@test_bot"))
    await rig.shows("make deploy", GROUP)
    await rig.quiet()
    hold(rig.model)
    for person, text in ((FRIEND, "count them"), (FRIEND, "and those"), (PERSON, "and mine")):
        rig.telegram.say(GROUP, f"@test_bot {text}", user=person, **mention("@test_bot"))
        await rig.model.wait_inflight(1)
    await rig.until(lambda: (there := rig.session(GROUP)) and len(there.state.queue) == 2)


async def test_what_waits_in_a_lost_chat_ends_too_and_each_hears_of_it_once(rig: Rig) -> None:
    await wait_there(rig)
    rig.telegram.blocked.add(GROUP)
    rig.telegram.put_out(GROUP, "kicked")
    await rig.shows(LOST)
    await rig.shows(LOST, FRIEND)
    async with asyncio.timeout(PATIENCE):  # what only waited ends behind the words about it
        while [one[1] for one in await rig.audit()].count("chat_lost") < 4:
            await asyncio.sleep(0.02)
    await ends(rig, GROUP)
    for person in (PERSON, FRIEND):
        assert sum(LOST in text for text in rig.said(person)) == 1
    assert [one[1] for one in await rig.audit()].count("chat_lost") == 4


async def test_what_only_waits_for_a_button_is_told_that_its_chat_is_lost(rig: Rig) -> None:
    """No session is open there."""
    rig.model.script(Say("hello"), DEPLOY)
    await rig.start()
    rig.telegram.say(PERSON, "hi, please")
    await rig.shows("hello")
    rig.telegram.say(GROUP, "@test_bot deploy it", user=PERSON, **mention("@test_bot"))
    await rig.shows("make deploy", GROUP)
    await rig.quiet()
    rig.telegram.put_out(GROUP, "left")
    await rig.shows(LOST)
    await ends(rig, GROUP)
    assert await rig.store.next_due() is None, "its question is closed"


async def test_where_it_is_let_in_again_it_says_why_it_stopped(rig: Rig) -> None:
    rig.model.script(Say("hello"), DEPLOY, Say("Here I am."))
    await rig.start()
    rig.telegram.say(PERSON, "hi, please")
    await rig.shows("hello")
    rig.telegram.say(GROUP, "@test_bot deploy it", user=PERSON, **mention("@test_bot"))
    card = await rig.card(GROUP)
    await rig.quiet()
    rig.telegram.blocked.add(GROUP)
    rig.telegram.put_out(GROUP, "left")
    await rig.shows(LOST)
    await rig.quiet()
    rig.telegram.blocked.clear()
    rig.telegram.put_out(GROUP, "member")
    assert "already closed" in await rig.told(rig.press(card, "Approve once"))
    rig.telegram.say(GROUP, "@test_bot are you there?", user=PERSON, **mention("@test_bot"))
    await rig.shows("Here I am.", GROUP)
    await rig.shows("I could not write here any more, so I stopped.", GROUP)
    await rig.quiet()
    assert LOST not in str(rig.said(GROUP)) and len(rig.model.requests) == 3


async def ends(rig: Rig, chat: int) -> None:
    """Nothing of the chat is left, and the model is asked no more."""
    asked = len(rig.model.requests)
    if rig.model.gate is not None:
        rig.model.gate.set()
    await rig.quiet()
    opened = await rig.store.acquire(rig.where(chat).id, "looks", 30.0)
    assert opened is not None
    assert (opened.inbox, opened.turns, opened.questions) == ((), (), ())
    assert len(rig.model.requests) == asked
