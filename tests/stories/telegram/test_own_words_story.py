"""'Something else' and the edit of a plan in a group: who presses is who writes, whoever was asked."""

import asyncio
import json

import pytest

from agent_core.context.surroundings import strip_surroundings
from gateway.conversation.question_rows import list_open_questions
from gateway.texts import say
from tests.fakes.model_server import Call, Say
from tests.stories.rig import ADMIN, FRIEND, GROUP, PERSON, Json, Rig, labels, mention, write

OPTIONS = {"question": "which?", "kind": "decision", "options": ["red", "green"]}
ASK = Call("ask_user", json.dumps(OPTIONS))
OWN = say("something_else")


async def asked(rig: Rig, **more: str) -> Json:
    """A choice of Ann's waits in the group."""
    rig.model.script(ASK, Say("so be it"), Say("another turn"))
    await rig.start(**more)
    rig.telegram.say(GROUP, "@test_bot paint it", user=PERSON, **mention("", "test_bot"))
    return await rig.card(GROUP)


async def test_the_words_of_the_admin_who_pressed_are_taken(rig: Rig) -> None:
    card = await asked(rig)
    assert await rig.told(rig.press(card, OWN, ADMIN)) == say("own_words")
    rig.telegram.say(GROUP, "blue", user=ADMIN, reply_to=card["message_id"])
    await rig.shows("so be it", GROUP)
    assert "blue" in rig.seen(role="tool")[-1]


async def test_the_asked_one_may_still_write(rig: Rig) -> None:
    card = await asked(rig)
    await rig.told(rig.press(card, OWN, ADMIN))
    rig.telegram.say(GROUP, "yellow", user=PERSON, reply_to=card["message_id"])
    await rig.shows("so be it", GROUP)
    assert "yellow" in rig.seen(role="tool")[-1]


@pytest.mark.parametrize("who", [FRIEND, ADMIN])
async def test_who_has_not_pressed_answers_nothing(rig: Rig, who: int) -> None:
    card = await asked(rig)
    if who == FRIEND:
        assert await rig.told(rig.press(card, OWN, FRIEND)) == say("not_yours")
    await begins_a_turn(rig, who, card)


async def begins_a_turn(rig: Rig, who: int, card: Json) -> None:
    """What they reply is a turn of their own, and the question still waits."""
    rig.telegram.say(GROUP, "blue", user=who, reply_to=card["message_id"])
    await rig.shows("so be it", GROUP)
    assert rig.seen(role="tool") == []
    assert await rig.told(rig.press(card, "green", PERSON)) == ""
    await rig.shows("another turn", GROUP)
    assert "green" in rig.seen(role="tool")[-1]


async def test_after_a_restart_they_are_taken_too(rig: Rig) -> None:
    card = await asked(rig)
    await rig.told(rig.press(card, OWN, ADMIN))
    await rig.quiet()
    await rig.crash()
    await rig.start()
    rig.telegram.say(GROUP, "blue", user=ADMIN, reply_to=card["message_id"])
    await rig.shows("so be it", GROUP)
    assert "blue" in rig.seen(role="tool")[-1]


async def test_who_lost_the_right_meanwhile_answers_nothing(rig: Rig) -> None:
    card = await asked(rig)
    await rig.told(rig.press(card, OWN, ADMIN))
    await rig.quiet()
    await rig.stop()
    await rig.start(TELEGRAM_ADMIN_USERS="", TELEGRAM_ALLOWED_USERS=f"{PERSON},{FRIEND},{ADMIN}")
    await begins_a_turn(rig, ADMIN, card)


DENY = say("deny_reason")


async def test_why_something_is_denied_is_written_after_a_press(rig: Rig) -> None:
    rig.model.script(write("a.txt"), Say("so not"), Say("another turn"))
    await rig.start()
    rig.telegram.say(PERSON, "write it")
    card = await rig.card()
    assert labels(card)[-2:] == ["Deny", DENY]
    assert await rig.told(rig.press(card, DENY)) == say("deny_words")
    await rig.crash()
    await rig.start()
    rig.telegram.say(PERSON, "use another name")
    await rig.shows("so not")
    await rig.quiet()
    assert "use another name" in rig.seen(role="tool")[-1] and not rig.cards()
    assert "Reason: use another name" in card["text"]
    rig.telegram.say(PERSON, "and now?")
    await rig.shows("another turn")


async def test_a_reason_is_taken_of_who_pressed_that_alone(rig: Rig) -> None:
    rig.model.script(write("a.txt"), Say("another turn"), Say("so not"))
    await rig.start()
    rig.telegram.say(GROUP, "@test_bot write it", user=PERSON, **mention("", "test_bot"))
    card = await rig.card(GROUP)
    assert await rig.told(rig.press(card, DENY, FRIEND)) == say("not_yours")
    assert await rig.told(rig.press(card, DENY, ADMIN)) == say("deny_words")
    rig.telegram.say(GROUP, "wait a moment", user=PERSON, reply_to=card["message_id"])
    await rig.shows("another turn", GROUP)
    assert rig.cards(GROUP), "who asked, and did not press, decides nothing by words"
    rig.telegram.say(GROUP, "another name", user=ADMIN, reply_to=card["message_id"])
    await rig.shows("so not", GROUP)
    assert "another name" in rig.seen(role="tool")[-1]


TAKES_WORDS = {
    "form": (Call("ask_user", '{"question": "which?"}'), ""),
    "choice": (ASK, OWN),
    "reason": (write("a.txt"), DENY),
}
"""Calls that ask, and the button after which words are taken; none is needed for a form."""


@pytest.mark.parametrize("kind", TAKES_WORDS)
@pytest.mark.parametrize("crash", [False, True])
async def test_what_waits_already_is_no_answer(rig: Rig, kind: str, crash: bool) -> None:
    """What was written before words were asked for has its own turn, and the question still waits."""
    call, button = TAKES_WORDS[kind]

    def answer(body: Json) -> Call | Say:
        last = strip_surroundings(str(body["messages"][-1]["content"]))
        return call if last == "paint it" else Say(f"ack {last}")

    rig.model.script(*[answer] * 9)
    await rig.start(MESSAGE_BURST="never")
    gate = asyncio.Event()
    rig.model.gate = None if button else gate
    rig.telegram.say(PERSON, "paint it")
    if button:
        card = await rig.card()
        await rig.quiet()
        rig.model.gate = gate
        rig.telegram.say(PERSON, "look around")
    await rig.model.wait_inflight(1)
    rig.telegram.say(PERSON, "buy milk")
    await rig.until(lambda: (s := rig.session()) is not None and s.state.queue)
    if button:
        await rig.told(rig.press(card, button))
    if crash:
        await rig.crash()
        await rig.start(MESSAGE_BURST="never")
    gate.set()
    await rig.shows("ack buy milk")
    await rig.quiet()
    rig.telegram.say(PERSON, "blue")
    await rig.until(lambda: rig.seen(role="tool"))
    (told,) = rig.seen(role="tool")
    assert "blue" in told and "milk" not in told


@pytest.mark.parametrize("late", [False, True])
async def test_what_was_written_above_the_card_is_no_answer(rig: Rig, late: bool) -> None:
    """It came so late that the question waited already."""
    rig.model.script(TAKES_WORDS["form"][0], *[Say("ack"), Say("so be it")] * late, Say("so be it"))
    await rig.start()
    gate = rig.model.gate = asyncio.Event()
    rig.telegram.hold("getUpdates")
    rig.telegram.say(PERSON, "paint it")
    await rig.model.wait_inflight(1)
    if late:
        rig.telegram.say(PERSON, "buy milk")
    gate.set()
    await rig.shows("which?")
    await rig.quiet()
    rig.telegram.release("getUpdates")
    if late:
        await rig.shows("ack")
        await rig.quiet()
    rig.telegram.say(PERSON, "blue")
    await rig.shows("so be it")
    assert rig.seen(role="tool") == ["blue"]


async def test_what_is_written_before_the_card_can_be_sent_is_no_answer(rig: Rig) -> None:
    rig.model.script(TAKES_WORDS["form"][0], Say("ack"), Say("so be it"))
    await rig.start()
    rig.telegram.fail("sendMessage", 429, retry_after=1)
    rig.telegram.say(PERSON, "paint it")
    await rig.telegram.wait_calls("sendMessage")
    rig.telegram.say(PERSON, "buy milk")
    await rig.shows("ack")
    await rig.shows("which?")
    await rig.quiet()
    rig.telegram.say(PERSON, "blue")
    await rig.shows("so be it")
    assert rig.seen(role="tool") == ["blue"]


async def test_words_below_a_card_whose_sender_was_killed_are_an_answer(rig: Rig) -> None:
    """The next life does not know its number yet when they come."""
    rig.model.script(TAKES_WORDS["form"][0], Say("so be it"))
    await rig.start()
    rig.telegram.hold_answers("sendMessage")
    rig.telegram.say(PERSON, "paint it")
    await rig.telegram.wait_text(PERSON, "which?")
    await rig.crash()
    rig.telegram.release("sendMessage")
    rig.telegram.say(PERSON, "blue")
    await rig.start()
    await rig.shows("so be it")
    assert rig.seen(role="tool") == ["blue"]


@pytest.mark.parametrize("kind", TAKES_WORDS)
@pytest.mark.parametrize("length", [3_900, 4_096, 9_000])
async def test_words_of_any_length_are_not_said_back(rig: Rig, kind: str, length: int) -> None:
    """The card shows how they begin, in its one message; nothing is set aside."""
    call, button = TAKES_WORDS[kind]
    rig.model.script(call, Say("so be it"))
    await rig.start()
    rig.telegram.say(PERSON, "paint it")
    await rig.telegram.wait(
        lambda: any("reply_markup" in one for one in rig.telegram.chats[PERSON])
    )
    await rig.quiet()
    before = len(rig.said())
    if button:
        await rig.told(rig.press(rig.cards()[0], button))
    words = "ж " * (length // 2)
    for start in range(0, len(words), 4_096):
        rig.telegram.say(PERSON, words[start : start + 4_096])
    await rig.shows("so be it")
    await rig.quiet()
    assert len(rig.said()) == before + 1 and max(map(len, rig.said())) < 2_000
    assert rig.log.named("view_set_aside") == []
    assert rig.seen(role="tool")[-1].count("ж") == length // 2


async def test_an_answer_makes_no_second_message_of_a_question_that_fills_one(rig: Rig) -> None:
    """A field that asks for a reply cannot be edited, and so no part of its card may be new."""
    question = json.dumps({"question": f"which? {'words ' * 640}"})
    rig.model.script(Call("ask_user", question), Say("so be it"))
    await rig.start()
    rig.telegram.say(PERSON, "paint it")
    await rig.shows("which?")
    await rig.quiet()
    before = len(rig.said())
    rig.telegram.say(PERSON, "blue " * 400)
    await rig.shows("so be it")
    await rig.quiet()
    assert len(rig.said()) == before + 1 and rig.log.named("view_set_aside") == []


@pytest.mark.parametrize(
    ("kind", "reply"),
    [("form", True), ("choice", True), ("choice", False), ("reason", True), ("reason", False)],
)
async def test_words_answer_the_card_that_is_meant(rig: Rig, kind: str, reply: bool) -> None:
    """Where an older question takes words too: a reply, and what is written after a press."""
    call, button = TAKES_WORDS[kind]

    def answer(body: Json) -> Call | Say:
        last = strip_surroundings(str(body["messages"][-1]["content"]))
        if last == "older":
            return Call("ask_user", '{"question": "which first?"}')
        return call if last.startswith("paint it") else Say("so be it")

    rig.model.script(*[answer] * 9)
    await rig.start(MESSAGE_BURST="never")
    gate = rig.model.gate = asyncio.Event()
    rig.telegram.say(PERSON, "older")
    await rig.model.wait_inflight(1)
    rig.telegram.say(PERSON, "paint it")
    await rig.until(lambda: (s := rig.session()) is not None and s.state.queue)
    gate.set()
    await rig.telegram.wait(lambda: len(rig.said()) == 2 + (kind == "reason"))
    await rig.quiet()
    card = rig.telegram.chats[PERSON][-1]
    if not reply or kind == "reason":
        await rig.told(rig.press(card, button))
    rig.telegram.say(PERSON, "blue", **({"reply_to": card["message_id"]} if reply else {}))
    await rig.shows("so be it")
    await rig.quiet()
    assert "blue" in rig.seen(role="tool")[-1]
    waiting = await list_open_questions(rig.store, rig.where().id)
    assert [getattr(one.question, "text", "") for _, one in waiting] == ["which first?"]
