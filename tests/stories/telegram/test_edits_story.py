"""Edits of messages that came in parts, with a quote, or whose turn waits for a person; and what
waits when its person loses the right to be answered."""

import asyncio
import re

import pytest

from tests.fakes.model_server import Call, Say
from tests.stories.rig import ADMIN, GROUP, PERSON, Rig, labels, mention

BURST = ("hey", "can you", "look at the lgo")
CARL = {"type": "user", "date": 5, "sender_user": {"id": 88, "is_bot": False, "first_name": "Carl"}}
GUEST = 21


async def answer_again(rig: Rig, chat: int = PERSON) -> None:
    """Press the button below the answer, once it is offered."""

    def offers() -> list[dict[str, object]]:
        return [one for one in rig.buttons(chat) if "Answer again" in labels(one)]

    await rig.telegram.wait(lambda: bool(offers()))
    await rig.quiet()
    asked = len(rig.model.requests)
    rig.press(offers()[-1], "Answer again")
    await rig.model.wait(lambda: len(rig.model.requests) > asked)
    await rig.quiet()


async def say_burst(rig: Rig) -> list[int]:
    """One request in three messages, which the model is asked; their ids."""
    gate, said = rig.model.gate, []
    for text in BURST:
        said.append(rig.telegram.say(PERSON, text)["message"]["message_id"])
        await rig.model.wait(lambda: bool(rig.model.requests) and rig.model.inflight == 1)
        whole = "\n".join(BURST[: len(said)])
        await rig.model.wait(lambda whole=whole: rig.seen(role="user")[-1:] == [whole])
    assert gate is not None
    return said


@pytest.mark.parametrize("part", [0, 1, 2])
async def test_any_part_of_a_burst_is_edited_while_it_is_worked_at(rig: Rig, part: int) -> None:
    rig.model.script(*[Call("list_files")] * 3, Say("done"))
    await rig.start(MESSAGE_BURST="60")
    gate = rig.model.gate = asyncio.Event()
    said = await say_burst(rig)
    rig.telegram.edit(PERSON, said[part], "in other words")
    await rig.until(lambda: (s := rig.session()) and s.state.active and s.state.active.changes)
    gate.set()
    await rig.shows("done")
    assert "(I changed my message to: in other words)" in rig.seen(role="user")


async def test_a_message_that_steered_is_edited(rig: Rig) -> None:
    rig.model.script(Call("list_files"), Call("list_files"), Say("done"))
    await rig.start()
    rig.telegram.say(PERSON, "/mode steer")
    await rig.shows("into account")
    await rig.quiet()
    first = rig.model.gate = asyncio.Event()
    rig.telegram.say(PERSON, "pack")
    await rig.model.wait_inflight(1)
    said = rig.telegram.say(PERSON, "it is clod there")["message"]["message_id"]
    await rig.until(lambda: (s := rig.session()) is not None and s.state.queue)
    second = rig.model.gate = asyncio.Event()
    first.set()
    await rig.model.wait(lambda: len(rig.model.requests) == 2 and rig.model.inflight == 1)
    rig.telegram.edit(PERSON, said, "it is cold there")
    await rig.until(lambda: (s := rig.session()) and s.state.active and s.state.active.changes)
    second.set()
    await rig.shows("done")
    assert rig.seen(role="user")[-1] == "(I changed my message to: it is cold there)"


async def test_parts_of_an_answered_burst_are_edited_one_after_another(rig: Rig) -> None:
    await rig.start(MESSAGE_BURST="60")
    gate = rig.model.gate = asyncio.Event()
    said = await say_burst(rig)
    gate.set()
    await rig.shows("ack hey")
    await rig.quiet()
    rig.telegram.edit(PERSON, said[2], "look at the log")
    await rig.shows("You edited your message")
    await rig.quiet()
    rig.telegram.edit(PERSON, said[0], "hello")
    await rig.quiet()
    await answer_again(rig)
    assert rig.seen(role="user")[-1] == "hello\ncan you\nlook at the log"


async def test_what_is_answered_again_keeps_what_it_replied_to_and_its_author(rig: Rig) -> None:
    await rig.start()
    theirs = rig.telegram.say(GROUP, "the disk is full", user=12)["message"]["message_id"]
    asked = rig.telegram.say(GROUP, "@test_bot whyy", user=PERSON, reply_to=theirs, **mention(""))[
        "message"
    ]["message_id"]
    await rig.shows("whyy", GROUP)
    await rig.quiet()
    rig.telegram.edit(GROUP, asked, "@test_bot why", **mention(""))
    await answer_again(rig, GROUP)
    assert rig.seen(role="user")[-1] == "> U12:\n> the disk is full\n[U11] @test_bot why"


async def test_an_edited_comment_keeps_what_it_came_with(rig: Rig) -> None:
    await rig.start()
    asked = rig.telegram.say(PERSON, "who is rihgt?")["message"]["message_id"]
    rig.telegram.say(PERSON, "it is free", forward_origin=CARL)
    await rig.shows("it is free")
    await rig.quiet()
    rig.telegram.edit(PERSON, asked, "who is right?")
    await answer_again(rig)
    assert rig.seen(role="user")[-1] == "who is right?\n> Forwarded, by Carl:\n> it is free"


async def test_an_edit_beside_an_open_card_is_heard(rig: Rig) -> None:
    rig.model.script(Call("run_command", '{"command": "make deploy"}'), Say("I ask anew."))
    await rig.start()
    asked = rig.telegram.say(PERSON, "deploy it")["message"]["message_id"]
    await rig.card()
    await rig.quiet()
    rig.telegram.edit(PERSON, asked, "deploy it to the test server")
    await rig.shows("I ask anew.")
    assert "deploy it to the test server" in rig.seen(role="user")[-1]
    assert "Still waiting" in rig.seen(role="user")[-1]


# ---- the right to be answered -------------------------------------------------------------------


async def let_in(rig: Rig) -> None:
    rig.telegram.say(GUEST, "hi")
    shown = await rig.shows("code", GUEST)
    code = re.search(r"\b[A-Z0-9]{8}\b", shown["text"])
    assert code is not None
    rig.telegram.say(ADMIN, f"/pair {code[0]}")
    await rig.shows("You now have access", GUEST)
    await rig.quiet()


async def put_out(rig: Rig) -> None:
    rig.telegram.say(ADMIN, f"/unpair {GUEST}")
    await rig.until(lambda: len(rig.said(ADMIN)) > 1)


@pytest.mark.parametrize("mode", ["queue", "steer"])
@pytest.mark.parametrize("chat", [GUEST, GROUP])
async def test_what_waits_of_who_was_put_out_is_not_answered(
    rig: Rig, mode: str, chat: int
) -> None:
    rig.model.script(Call("list_files"), Say("done"))
    await rig.start()
    await let_in(rig)
    rig.telegram.say(chat, f"/mode@test_bot {mode}", user=ADMIN if chat == GROUP else GUEST)
    await rig.quiet()
    gate = rig.model.gate = asyncio.Event()
    rig.telegram.say(chat, "@test_bot one", user=GUEST, **mention(""))
    await rig.model.wait_inflight(1)
    rig.telegram.say(chat, "@test_bot wish again", user=GUEST, **mention(""))
    await rig.until(lambda: (s := rig.session(chat)) is not None and s.state.queue)
    await put_out(rig)
    gate.set()
    await rig.shows("done", chat)
    await rig.quiet()
    assert "wish again" not in str([one.body for one in rig.model.requests])
    if chat == GUEST:
        await rig.shows("I do not know you yet, so I did nothing", GUEST)
