"""To which question an answer belongs, where several wait or something else is replied to."""

import json
from pathlib import Path

import pytest

from agent_core import ambient
from gateway.messages import Conversation, MessageReceived, Sender
from tests.fakes.model_server import Call, Say
from tests.stories.discord_rig import DM as DISCORD_DM
from tests.stories.discord_rig import PERSON as DISCORDER
from tests.stories.discord_rig import DiscordRig
from tests.stories.plan_rig import ASK as PLANNED
from tests.stories.plan_rig import CHAIN, plan
from tests.stories.rig import FRIEND, GROUP, PERSON, Rig, living, mention
from tests.stories.slack_rig import DM, SlackRig
from tests.stories.surfaces import Held, Web

pytestmark = pytest.mark.pick("answers", 3)
DEPLOY = Call("run_command", '{"command": "make deploy"}')
REPLIES = (Say("The train leaves at nine."), Say("Because of the snow."))


def ask(question: str) -> Call:
    return Call("ask_user", json.dumps({"question": question}))


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("newest_first", [False, True])
async def test_in_a_group_each_reply_answers_its_card(
    rig: Rig, newest_first: bool, crash: bool
) -> None:
    rig.model.script(ask("How many?"), ask("Which colour?"), DEPLOY)
    await rig.start()
    cards = []
    for user, wish, shown in (
        (PERSON, "order", "How many?"),
        (FRIEND, "paint", "Which colour?"),
        (FRIEND, "deploy", "make deploy"),
    ):
        rig.telegram.say(GROUP, f"@test_bot {wish}", user=user, **mention("@test_bot"))
        cards.append(await rig.shows(shown, GROUP))
        await rig.quiet()
    if crash:
        await rig.crash()
        await rig.start()
    rig.model.script(Say("Noted one."), Say("Noted two."))
    answers = [(PERSON, cards[0], "three"), (FRIEND, cards[1], "red")]
    for n, (user, card, text) in enumerate(reversed(answers) if newest_first else answers):
        rig.telegram.say(GROUP, text, user=user, reply_to=card["message_id"])
        await rig.shows(("Noted one.", "Noted two.")[n], GROUP)
        await rig.quiet()
        assert rig.seen(role="tool") == [text]


async def test_in_private_a_reply_to_an_old_answer_is_none(rig: Rig) -> None:
    rig.model.script(REPLIES[0], ask("How many?"), REPLIES[1], Say("Three it is."))
    await rig.start()
    rig.telegram.say(PERSON, "when?")
    old = await rig.shows("at nine")
    await rig.quiet()
    rig.telegram.say(PERSON, "order")
    card = await rig.shows("How many?")
    await rig.quiet()
    rig.telegram.say(PERSON, "why so early?", reply_to=old["message_id"])
    await rig.shows("Because of the snow.")
    assert "at nine.\nwhy so early?" in rig.seen(role="user")[-1]
    await rig.quiet()
    rig.telegram.say(PERSON, "three", reply_to=card["message_id"])
    await rig.shows("Three it is.")
    assert rig.seen(role="tool") == ["three"]


async def test_in_private_a_reply_to_the_reminder_is_one(rig: Rig) -> None:
    rig.model.script(ask("How many?"), Say("Three it is."))
    await rig.start(QUESTION_REMINDER="1")
    rig.telegram.say(PERSON, "order")
    await rig.shows("How many?")
    reminder = await rig.shows("Still waiting")
    await rig.quiet()
    rig.telegram.say(PERSON, "three", reply_to=reminder["message_id"])
    await rig.shows("Three it is.")
    assert rig.seen(role="tool") == ["three"]


async def test_on_discord_a_reply_to_an_old_answer_is_none(discord: DiscordRig) -> None:
    discord.model.script(REPLIES[0], ask("How many?"), REPLIES[1], Say("Three it is."))
    await discord.start()
    await discord.discord.say(DISCORD_DM, "when?", DISCORDER)
    old = await discord.discord.shows(DISCORD_DM, "at nine")
    await discord.quiet()
    await discord.discord.say(DISCORD_DM, "order", DISCORDER)
    await discord.discord.shows(DISCORD_DM, "How many?")
    await discord.quiet()
    await discord.discord.say(DISCORD_DM, "why so early?", DISCORDER, old["id"])
    await discord.discord.shows(DISCORD_DM, "Because of the snow.")
    await discord.quiet()
    await discord.discord.say(DISCORD_DM, "three", DISCORDER)
    await discord.discord.shows(DISCORD_DM, "Three it is.")
    assert discord.seen(role="tool") == ["three"]


async def test_an_answer_that_replies_to_ones_own_words_brings_them(rig: Rig) -> None:
    rig.model.script(Say("Good."), ask("Where to?"), Say("Sent."))
    await rig.start()
    mine = rig.telegram.say(PERSON, "I live in Ulm now.")["message"]["message_id"]
    await rig.shows("Good.")
    await rig.quiet()
    rig.telegram.say(PERSON, "order")
    await rig.shows("Where to?")
    await rig.quiet()
    rig.telegram.say(PERSON, "there", reply_to=mine)
    await rig.shows("Sent.")
    assert rig.seen(role="tool") == [f"> U{PERSON}:\n> I live in Ulm now.\nthere"]


@pytest.mark.parametrize("crash", [False, True])
async def test_on_slack_a_reply_in_the_thread_below_a_card_of_the_apps_chat_answers(
    slack: SlackRig, crash: bool
) -> None:
    slack.model.script(ask("How many?"), Say("Three it is."))
    await slack.start()
    slack.slack.say(DM, "order")
    card = await slack.asks()
    await slack.quiet()
    if crash:
        await slack.crash()
        await slack.start()
    slack.slack.say(DM, "three", thread=card["ts"])
    answer = await slack.shows("Three it is.")
    await slack.quiet()
    assert slack.seen(role="tool") == ["three"] and "thread_ts" not in answer
    slack.slack.say(DM, "and why?", thread=card["ts"])
    await slack.shows("and why?")


async def test_a_reply_below_another_message_of_the_apps_chat_does_not(slack: SlackRig) -> None:
    slack.model.script(REPLIES[0], ask("How many?"), REPLIES[1])
    await slack.start()
    slack.slack.say(DM, "when?")
    old = await slack.shows("at nine")
    await slack.quiet()
    slack.slack.say(DM, "order")
    await slack.asks()
    await slack.quiet()
    slack.slack.say(DM, "why so early?", thread=old["ts"])
    await slack.shows("Because of the snow.")
    assert slack.seen(role="tool") == []


WAY = Call("ask_user", '{"question": "Which way?", "options": ["Train", "Plane"]}')
EARLY = {
    "words": ("paint it", [ask("Which colour?"), Say("so be it")], "Which colour?", "in red"),
    "option": ("book it", [WAY, Say("so be it")], "Which way?", "train"),
    "plan": ("[Planning]", [CHAIN], "Find the hosts", "in Bern"),
}
"""Each question that takes plain words: the request, what the model says, the words of the card,
and words that would answer it."""


@pytest.mark.parametrize("kind", EARLY)
async def test_at_the_page_what_was_stored_before_the_card_is_no_answer(
    tmp_path: Path, kind: str
) -> None:
    """The message had not been looked at when the question came. The same words are one after it."""
    request, (first, *then), shown, words = EARLY[kind]
    async with living(tmp_path) as rig:
        person = Web(rig)
        person.answers(**{request: [Held(first), *then], "[Planning again]": [plan("a: so be it")]})
        await person.open()
        if kind == "plan":
            await person.command("/plan on")
        await person.say(PLANNED if kind == "plan" else request)
        await person.thinks()
        where = Conversation(platform="web", account="local", channel="owner~c1", private=True)
        said = MessageReceived(
            conversation=where, sender=Sender(platform="web", id="owner", name="owner"),
            event="early", message="early", text=words, at=ambient.now(),
        )  # fmt: skip
        await rig.store.accept([said])
        person.mind.let_go()
        await person.card(shown)
        rig.host.wake(where.id)
        await person.shows(words)  # in the answer to it, or as the title of a plan of its own
        await person.settle()
        assert "so be it" not in str(person.screen())
        await person.say(words)
        await person.shows("so be it")
        await person.close()
