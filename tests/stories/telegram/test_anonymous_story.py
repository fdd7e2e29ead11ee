"""Admins who stay anonymous write in the name of their group; Telegram names them when they press."""

from functools import partial
from typing import Any

import pytest

from adapters.telegram.adapter import MAX_TOLD
from adapters.telegram.render import write_command
from gateway.command_texts import write_commands
from gateway.texts import CATALOGUE, say
from tests.fakes.model_server import Call, Say
from tests.stories.rig import ADMIN, FRIEND, GROUP, PERSON, STRANGER, Rig, mention

ANONYMOUS = 1087968824
AS_GROUP: dict[str, Any] = {
    "user": ANONYMOUS,
    "sender_chat": {"id": GROUP, "type": "supergroup", "title": "Ops"},
}
WITH_GROUP = {"TELEGRAM_ALLOWED_USERS": f"{PERSON},{FRIEND},{GROUP}"}
DEPLOY = Call("run_command", '{"command": "make deploy"}')
WHO = "you act in the name of the group, so I cannot see who you are"
AS_ASKED = "This was asked in the name of the group, but a press names you."


async def ask_as_group(rig: Rig, text: str) -> None:
    rig.telegram.say(GROUP, f"@test_bot {text}", **AS_GROUP, **mention(""))


@pytest.mark.parametrize("text", ["@test_bot what is it?", "/status@test_bot"])
async def test_who_is_not_allowed_as_the_group_hears_why(rig: Rig, text: str) -> None:
    await rig.start()
    rig.telegram.say(GROUP, text, **AS_GROUP, **mention(""))
    told = await rig.shows(WHO, GROUP)
    assert str(GROUP) in told["text"]
    rig.telegram.say(GROUP, "among ourselves", **AS_GROUP)
    rig.telegram.say(GROUP, "@test_bot and I?", user=STRANGER, **mention(""))
    await rig.quiet()
    assert len(rig.said(GROUP)) == 1 and rig.model.requests == []


@pytest.mark.parametrize("presser", [PERSON, FRIEND])
async def test_a_press_is_not_the_groups_and_says_how_to_answer(rig: Rig, presser: int) -> None:
    rig.model.script(DEPLOY, Say("Deployed."))
    await rig.start(**WITH_GROUP)
    await ask_as_group(rig, "deploy it")
    card = await rig.card(GROUP)
    assert AS_ASKED in await rig.told(rig.press(card, "Approve once", presser))
    await rig.quiet()
    assert len(rig.model.requests) == 1, "it decided nothing"
    rig.telegram.say(GROUP, "/approve@test_bot", **AS_GROUP)
    await rig.shows("Deployed.", GROUP)


async def test_an_admin_of_the_bot_decides_by_a_press(rig: Rig) -> None:
    rig.model.script(DEPLOY, Say("Deployed."))
    await rig.start(**WITH_GROUP)
    await ask_as_group(rig, "deploy it")
    assert await rig.told(rig.press(await rig.card(GROUP), "Approve once", ADMIN)) == ""
    await rig.shows("Deployed.", GROUP)


async def test_a_choice_is_answered_in_words_in_the_groups_name(rig: Rig) -> None:
    rig.model.script(
        Call("ask_user", '{"question": "Which day?", "options": ["Monday", "Friday"]}'),
        Say("Done."),
    )
    await rig.start(**WITH_GROUP)
    await ask_as_group(rig, "plan it")
    card = await rig.card(GROUP)
    assert AS_ASKED in await rig.told(rig.press(card, "Friday", PERSON))
    rig.telegram.say(GROUP, "friday", reply_to=card["message_id"], **AS_GROUP)
    await rig.shows("Done.", GROUP)
    assert "Friday" in rig.seen()[-1]


async def test_a_press_without_a_name_counts_as_the_group_alone(rig: Rig) -> None:
    rig.model.script(DEPLOY, Say("Deployed."))
    await rig.start()
    rig.telegram.say(GROUP, "@test_bot deploy it", user=PERSON, **mention(""))
    card = await rig.card(GROUP)
    assert WHO in await rig.told(rig.press(card, "Approve once", ANONYMOUS))
    await rig.quiet()
    assert len(rig.model.requests) == 1


@pytest.mark.parametrize("language", CATALOGUE.list_codes())
def test_the_words_for_a_press_fit_into_telegrams_window(language: str) -> None:
    told = (say("asked_anonymously", language), say("anonymous", language, id=-1001234567890))
    for text in told:
        assert len(write_commands(text, partial(write_command, bot="a" * 32))) <= MAX_TOLD
