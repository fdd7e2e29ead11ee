"""Situations that other stories show on one platform only, on the others where they can occur."""

import asyncio
import json

import pytest

from gateway.texts import say
from tests.fakes.discord_server import Call as DiscordCall
from tests.fakes.discord_server import Refusal
from tests.fakes.discord_server import labels as labels_of
from tests.fakes.model_server import Call, Say
from tests.stories.discord_rig import ADMIN as DISCORD_ADMIN
from tests.stories.discord_rig import CHANNEL, DiscordRig
from tests.stories.discord_rig import DM as DISCORD_DM
from tests.stories.discord_rig import PERSON as DISCORDER
from tests.stories.rig import Rig
from tests.stories.slack_rig import DEV, DM, SlackRig
from tests.stories.surfaces import Discord, Slack, Surface, Telegram, Web

pytestmark = pytest.mark.pick("everywhere", 3)
DEPLOY = Call("run_command", '{"command": "make deploy"}')
SPOKEN = [Telegram, Discord, Slack]


@pytest.mark.parametrize("surface", [Telegram, Web, Discord, Slack])
async def test_words_that_only_look_like_a_command_are_words(
    surface: type[Surface], rig: Rig
) -> None:
    person = surface(rig)
    await person.open()
    try:
        person.answers(full=[Say("Then delete something.")])
        if surface is Discord:  # which offers no such command
            await person.say("/tmp is full, why?")
        else:
            await person.command("/tmp is full, why?")
        await person.shows("Then delete something.")
        assert rig.seen(role="user") == ["/tmp is full, why?"]
    finally:
        await person.close()


@pytest.mark.parametrize("surface", SPOKEN)
async def test_a_voice_note_that_nobody_can_hear_leaves_the_question_open(
    surface: type[Telegram | Discord | Slack], rig: Rig
) -> None:
    person = surface(rig)
    await person.open()
    try:
        ask = Call("ask_user", json.dumps({"question": "What shall I buy?"}))
        person.answers(Buy=[ask, Say("Bought.")])
        await person.say("Buy it")
        await person.card("What shall I buy?")
        await rig.quiet()
        await person.speak(b"OggS!")
        await person.shows(say("no_ears")[:20])
        await rig.quiet()
        await person.fill_in("milk")
        await person.shows("Bought.")
        assert rig.seen(role="tool") == ["milk"]
    finally:
        await person.close()


async def test_on_discord_a_reply_to_an_answer_quotes_it(discord: DiscordRig) -> None:
    discord.model.script(Say("one two three"), Say("the second"))
    await discord.start()
    await discord.discord.say(DISCORD_DM, "count", DISCORDER)
    answer = await discord.discord.shows(DISCORD_DM, "one two three")
    await discord.quiet()
    await discord.discord.say(DISCORD_DM, "why?", DISCORDER, answer["id"])
    await discord.discord.shows(DISCORD_DM, "the second")
    assert "> You:\n> one two three\nwhy?" in discord.seen(role="user")[-1]


# ---- two press at once, and buttons of another installation -------------------------------------


async def test_on_discord_the_first_of_two_presses_decides(discord: DiscordRig) -> None:
    discord.model.script(DEPLOY, Say("So not."))
    await discord.start()
    asked = await discord.discord.say(CHANNEL, "@bot deploy", DISCORDER)
    card = await discord.carded(asked["id"])
    await discord.quiet()
    before = dict(card, components=json.loads(json.dumps(card["components"])))
    await discord.discord.press(before, "Deny", DISCORD_ADMIN)
    late = await discord.discord.press(before, "Approve once", DISCORDER)
    assert "already closed" in await discord.discord.told(late)
    await discord.discord.shows(asked["id"], "So not.")
    await discord.quiet()
    assert not any("Approve once" in labels_of(one) for one in discord.discord.chats[asked["id"]])


async def test_on_slack_the_first_of_two_presses_decides(slack: SlackRig) -> None:
    slack.model.script(DEPLOY, Say("So not."))
    await slack.start()
    slack.slack.mention(DEV, "deploy")
    card = await slack.asks(DEV)
    await slack.quiet()
    before = json.loads(json.dumps(card))
    slack.slack.press(before, "Deny", "U0ADM")
    slack.slack.press(before, "Approve once", "U0ANN")
    await slack.slack.wait(lambda: slack.slack.ephemeral)
    assert "already closed" in slack.slack.ephemeral[0]["text"]
    assert slack.slack.ephemeral[0]["user"] == "U0ANN"
    await slack.shows("So not.", DEV)


FOREIGN = "q:AAAAAAAAAAAAAAAAAAAAAA:once"


async def test_on_discord_a_button_of_another_installation_is_told(discord: DiscordRig) -> None:
    await discord.start()
    message = {"id": discord.discord.new_id(), "channel_id": DISCORD_DM}
    data = {"custom_id": FOREIGN, "component_type": 2}
    pressed = await discord.discord.interact(3, DISCORD_DM, DISCORDER, data, message=message)
    assert await discord.discord.told(pressed) == say("unknown_button")


async def test_on_slack_a_button_of_another_installation_is_told(slack: SlackRig) -> None:
    await slack.start()
    button = {"type": "button", "text": {"type": "plain_text", "text": "Yes"}, "value": FOREIGN}
    blocks = [{"type": "actions", "elements": [button | {"action_id": "b0"}]}]
    message = {"ts": slack.slack.stamp(), "channel": DEV, "text": "x", "blocks": blocks}
    slack.slack.press(message, "Yes")
    await slack.slack.wait(lambda: slack.slack.ephemeral)
    assert slack.slack.ephemeral[0]["text"] == say("unknown_button")


# ---- a picture that it may not send --------------------------------------------------------------

PICTURE = [Call("send_file", '{"paths": ["a.png"]}'), Say("There.")]
PNG = b"\x89PNG\r\n\x1a\n1234"


def refuse_files(person: Surface) -> None:
    """From now on the bot may send words alone."""
    match person:
        case Telegram():
            for method in ("sendPhoto", "sendDocument"):
                why = "Bad Request: not enough rights to send photos to the chat"
                person.rig.telegram.fail(method, 400, description=why, times=9)
        case Discord():
            sends = person.server._on_send

            def send(call: DiscordCall, channel: str) -> object:
                if call.files:
                    raise Refusal(403, "Missing Permissions", 50013)
                return sends(call, channel)

            person.server._on_send = send
        case Slack():
            person.slack.fail("files.completeUploadExternal", error="restricted_action", times=9)


@pytest.mark.parametrize("surface", SPOKEN)
async def test_a_picture_that_it_may_not_send_is_told_and_the_answer_comes(
    surface: type[Surface], rig: Rig
) -> None:
    person = surface(rig)
    await person.open()
    try:
        person.answers(draw=PICTURE, first=[Call("list_files"), Say("Yes?")])
        await person.say("first")
        await person.shows("Yes?")
        await rig.quiet()
        for folder in rig.home.glob("workspaces/*"):
            (folder / "a.png").write_bytes(PNG)
        refuse_files(person)
        await person.say("draw")
        await person.shows("There.")
        await person.shows("could not be shown")
        await rig.quiet()
        assert not rig.log.named("chat_lost")
    finally:
        await person.close()


# ---- languages and times ------------------------------------------------------------------------


async def test_on_slack_a_french_person_gets_french_cards_and_words(slack: SlackRig) -> None:
    slack.model.script(Call("run_command", '{"command": "make"}'), Say("Non."))
    slack.slack.people = {"U0ANN": {"locale": "fr-FR"}}
    await slack.start()
    slack.slack.say(DM, "lance-le")
    await slack.shows("Rien n’isole cette commande")
    slack.slack.press(await slack.asks(), "Refuser")
    await slack.shows("Refusé par")
    slack.slack.command(DM, "mode nope")
    await slack.slack.wait(
        lambda: any("Utilisez" in one or "Écrivez" in one for one in slack.said())
    )


async def test_at_the_page_a_french_person_gets_french_cards(rig: Rig) -> None:
    page = Web(rig, "fr")
    await page.open()
    try:
        page.answers(lance=[Call("run_command", '{"command": "make"}'), Say("Non.")])
        await page.say("lance-le")
        await page.card("Rien n’isole cette commande")
        await page.press("Refuser")
        await page.shows("Refusé par")
    finally:
        await page.close()


@pytest.mark.parametrize(
    ("surface", "written"),
    [
        (Telegram, '"date_time"'),
        (Discord, "<t:"),
        (Slack, '"type": "date"'),
        (Web, '"moments": [{"at": '),
    ],
)
async def test_a_time_is_written_for_the_readers_own_zone(
    surface: type[Surface], written: str, rig: Rig
) -> None:
    person = surface(rig)
    await person.open()
    try:
        person.answers(deploy=[DEPLOY, Say("Deployed.")])
        await person.say("deploy")
        await person.card("make deploy")
        await person.press("Approve once")
        await person.shows("Approved once by")
        await rig.quiet()
        said = [one for one in _list_calls(person) if "Approved once by" in one]
        assert written in said[-1]
    finally:
        await person.close()


def _list_calls(person: Surface) -> list[str]:
    """What the gateway showed, as the platform was given it."""
    match person:
        case Telegram():
            calls: list[object] = list(map(vars, person.rig.telegram.calls))
        case Discord():
            calls = list(map(vars, person.server.calls))
        case Slack():
            calls = list(map(vars, person.slack.calls))
        case _:
            calls = list(person._views.values())
    return [json.dumps(one, default=str) for one in calls]


# ---- a command in a channel, about a task in its thread or below replies -------------------------


@pytest.mark.parametrize("threads", [True, False])
async def test_on_discord_stop_in_the_channel_stops_the_task(
    discord: DiscordRig, threads: bool
) -> None:
    discord.discord.threads_allowed = threads
    await discord.start()
    idle = await discord.discord.command(CHANNEL, "stop", DISCORDER)
    whispers = discord.discord.whispers
    await discord.discord.wait(lambda: say("nothing_running") in whispers[idle])
    discord.model.gate = asyncio.Event()
    said = await discord.discord.say(CHANNEL, "@bot count", DISCORDER)
    await discord.model.wait_inflight(1)
    await discord.discord.command(CHANNEL, "stop", DISCORDER)
    await discord.discord.shows(said["id"] if threads else CHANNEL, "Stopped")
    await discord.quiet()
    assert len(discord.model.requests) == 1
    assert say("nothing_running") not in discord.read(CHANNEL), "told alone"


@pytest.mark.parametrize("threads", [True, False])
async def test_on_discord_what_waits_in_a_task_is_decided_in_the_channel(
    discord: DiscordRig, threads: bool
) -> None:
    discord.discord.threads_allowed = threads
    discord.model.script(DEPLOY, Say("So not."))
    await discord.start()
    said = await discord.discord.say(CHANNEL, "@bot deploy", DISCORDER)
    there = said["id"] if threads else CHANNEL
    await discord.carded(there)
    await discord.quiet()
    listed = await discord.discord.command(CHANNEL, "approvals", DISCORDER)
    whispers = discord.discord.whispers[listed]
    await discord.discord.wait(lambda: any("make deploy" in one for one in whispers))
    await discord.discord.command(CHANNEL, "deny", DISCORDER, "not now")
    await discord.discord.shows(there, "So not.")
    assert discord.seen(role="tool")[-1].endswith(": not now")


@pytest.mark.parametrize("early", [True, False])
async def test_after_a_restart_a_slash_command_of_slack_stops_what_was_cut_off(
    slack: SlackRig, early: bool
) -> None:
    await slack.start()
    slack.slack.mention(DEV, "an older one")
    await slack.shows("an older one", DEV)
    await slack.quiet()
    slack.model.gate = asyncio.Event()
    slack.slack.mention(DEV, "count")
    await slack.model.wait_inflight(1)
    slack.slack.mention(DEV, "somebody else's", "U0BOB")
    await slack.model.wait_inflight(2)
    await slack.crash()
    if early:
        slack.slack.command(DEV, "stop")
    await slack.start()
    if not early:
        slack.slack.command(DEV, "stop")
    stopped = await slack.shows("Stopped", DEV)
    slack.model.gate.set()
    await slack.shows("somebody else's", DEV)
    await slack.quiet()
    assert not any("ack [Ann] count" in one for one in slack.said(DEV))
    assert stopped["thread_ts"] != slack.slack.channels[DEV][0]["thread_ts"]


@pytest.mark.parametrize("threads", [True, False])
async def test_after_a_restart_stop_in_a_channel_of_discord_does_so_too(
    discord: DiscordRig, threads: bool
) -> None:
    discord.discord.threads_allowed = threads
    await discord.start()
    discord.model.gate = asyncio.Event()
    said = await discord.discord.say(CHANNEL, "@bot count", DISCORDER)
    await discord.model.wait_inflight(1)
    await discord.crash()
    await discord.discord.wait(lambda: not discord.discord.gateway.connected)
    await discord.start()
    await discord.discord.command(CHANNEL, "stop", DISCORDER)
    await discord.discord.shows(said["id"] if threads else CHANNEL, "Stopped")
    discord.model.gate.set()
    await discord.quiet()
    assert "ack" not in str(discord.read(said["id"]) + discord.read(CHANNEL))
