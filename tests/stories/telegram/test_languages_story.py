"""People of several languages in one chat: what is said after a crash is in the language of whom it is
for, whoever wrote last."""

import asyncio

import pytest

from gateway.texts import say
from tests.stories.rig import FRIEND, GROUP, PERSON, Rig, mention


@pytest.fixture(autouse=True)
def _speak(rig: Rig) -> None:
    rig.telegram.languages = {PERSON: "de", FRIEND: "en"}


def write(rig: Rig, chat: int, text: str, user: int) -> None:
    rig.telegram.say(chat, f"@test_bot {text}", user=user, **mention(""))


@pytest.mark.parametrize("chat", [PERSON, GROUP])
@pytest.mark.parametrize("text", ["/status", "hello"])
async def test_a_message_in_doubt_says_so_in_the_language_of_its_person(
    rig: Rig, chat: int, text: str
) -> None:
    await rig.start()
    rig.telegram.hold("sendMessage")
    write(rig, chat, text, PERSON)
    await rig.telegram.wait_calls("sendMessage")
    await rig.crash()
    rig.telegram.release("sendMessage")
    if chat == GROUP:
        write(rig, chat, "/whoami", FRIEND)
    await rig.start()
    await rig.shows(say("twice_note", "de"), chat)
    await rig.quiet()
    assert say("twice_note", "en") not in str(rig.said(chat))


async def test_a_message_that_is_given_up_is_told_to_who_wrote_it(rig: Rig) -> None:
    gate = rig.model.gate = asyncio.Event()
    await rig.start()
    write(rig, GROUP, "hello", PERSON)
    await rig.model.wait_inflight(1)
    write(rig, GROUP, "and me", FRIEND)
    for _ in range(3):
        asked = len(rig.model.requests)
        await rig.crash()
        await rig.start()
        await rig.model.wait(lambda asked=asked: len(rig.model.requests) > asked)
    gate.set()
    await rig.shows("and me", GROUP)
    await rig.quiet()
    assert any(say("dead", "de", n=3) in one for one in rig.said(GROUP))
