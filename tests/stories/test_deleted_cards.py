"""A card that somebody deleted, or the chat's own retention: its question comes again with the list of
what waits and with the reminder, and can be answered there."""

import pytest

from tests.fakes.model_server import Call, ModelServer, Say
from tests.stories.discord_rig import CHANNEL, DiscordRig
from tests.stories.discord_rig import PERSON as DISCORDER
from tests.stories.plan_rig import ASK, CHAIN, GOOD
from tests.stories.rig import GROUP, PERSON, Json, Rig, mention
from tests.stories.slack_rig import DEV, SlackRig

KINDS = {
    "approval": Call("run_command", '{"command": "make deploy"}'),
    "choice": Call("ask_user", '{"question": "Which day?", "options": ["Friday", "Sunday"]}'),
    "form": Call("ask_user", '{"question": "Which day?"}'),
}
BUTTON = {"approval": "Approve once", "choice": "Friday"}
kinds = pytest.mark.parametrize("kind", KINDS)


def ask(model: ModelServer, kind: str) -> None:
    model.script(KINDS[kind], Say("Done."))


def asking(rig: Rig, chat: int) -> list[Json]:
    """The messages that ask by buttons or a reply field."""
    fields = [m for m in rig.telegram.chats[chat] if "force_reply" in m.get("reply_markup", {})]
    return rig.cards(chat) or fields


@kinds
@pytest.mark.parametrize("reminded", [True, False])
async def test_on_telegram(rig: Rig, kind: str, reminded: bool) -> None:
    ask(rig.model, kind)
    await rig.start(QUESTION_REMINDER="1" if reminded else "never")
    rig.telegram.say(GROUP, "@test_bot deploy it", user=PERSON, **mention("@test_bot"))
    await rig.telegram.wait(lambda: asking(rig, GROUP))
    await rig.quiet()
    for _ in range(1 if reminded else 4):
        (card,) = asking(rig, GROUP)
        rig.telegram.chats[GROUP].remove(card)
        if not reminded:
            rig.telegram.say(GROUP, "/approvals@test_bot", user=PERSON)
        await rig.telegram.wait(lambda: asking(rig, GROUP))
        await rig.quiet()
    (card,) = asking(rig, GROUP)
    if kind == "form":
        rig.telegram.say(GROUP, "Friday", user=PERSON, reply_to=card["message_id"])
    else:
        rig.press(card, BUTTON[kind])
    await rig.shows("Done.", GROUP)


@pytest.mark.parametrize("reminded", [True, False])
async def test_a_plan_that_waits_to_be_run(rig: Rig, reminded: bool) -> None:
    await rig.start(QUESTION_REMINDER="1" if reminded else "never")
    rig.telegram.say(PERSON, "/plan on")
    await rig.shows("I show you plans before anything runs")
    rig.model.script(CHAIN, *[Say("x"), GOOD] * 3, Say("All."))
    rig.telegram.say(PERSON, ASK)
    card = await rig.card()
    rig.telegram.chats[PERSON].remove(card)
    if not reminded:
        rig.telegram.say(PERSON, "/approvals")
    rig.press(await rig.card(), "Go")
    await rig.shows("All.")


@kinds
async def test_a_card_that_stands_is_left_alone(rig: Rig, kind: str) -> None:
    ask(rig.model, kind)
    await rig.start()
    rig.telegram.say(PERSON, "deploy it")
    await rig.telegram.wait(lambda: asking(rig, PERSON))
    await rig.quiet()
    (card,) = asking(rig, PERSON)
    before = len(rig.said())
    rig.telegram.say(PERSON, "/approvals")
    await rig.until(lambda: len(rig.said()) == before + 1)
    await rig.quiet()
    assert asking(rig, PERSON) == [card] and len(rig.said()) == before + 1


@kinds
async def test_on_discord(discord: DiscordRig, kind: str) -> None:
    ask(discord.model, kind)
    await discord.start()
    said = await discord.discord.say(CHANNEL, "@bot deploy it", DISCORDER)
    thread = said["id"]
    await discord.discord.wait(lambda: discord.discord.chats[thread])
    await discord.quiet()
    shown = discord.discord.chats[thread]
    card = shown[-1]
    shown.remove(card)
    await discord.discord.command(thread, "approvals", DISCORDER)
    await discord.discord.wait(lambda: any(one["id"] > card["id"] for one in shown))
    await discord.quiet()
    token = "w:" if kind == "form" else "q:"
    await discord.discord.wait(lambda: any(token in str(one["components"]) for one in shown))
    if kind != "form":
        again = next(one for one in shown if BUTTON[kind] in str(one["components"]))
        await discord.discord.press(again, BUTTON[kind], DISCORDER)
        await discord.discord.shows(thread, "Done.")


@kinds
async def test_on_slack(slack: SlackRig, kind: str) -> None:
    ask(slack.model, kind)
    await slack.start()
    said, _ = slack.slack.mention(DEV, "deploy it", "U0ANN")
    card = await slack.asks(DEV)
    await slack.quiet()
    slack.slack.channels[DEV].remove(card)
    slack.slack.mention(DEV, "/approvals", "U0ANN", said["event"]["ts"])
    again = await slack.asks(DEV)
    await slack.quiet()
    assert again["ts"] != card["ts"] and again["thread_ts"] == said["event"]["ts"]
    if kind != "form":
        slack.slack.press(again, BUTTON[kind].removesuffix(" once"), "U0ANN")
        await slack.shows("Done.", DEV)
