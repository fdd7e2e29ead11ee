"""Edits of messages that were answered, used or commands: each is taken up, or its person is told in
one line why it changes nothing."""

import asyncio
import json

import pytest

from tests.fakes.model_server import Call, Say
from tests.stories.rig import FRIEND, GROUP, PERSON, Rig, labels, mention

QUICK = json.dumps({
    "greet": "!echo hello {}",
    "translate": "Translate into German: {} (exactly)",
    "deep": "/mode research",
})  # fmt: skip
ASKS = Call("ask_user", '{"question": "Which day?"}')
USED = "I had already used that message"
NOT_RUN = "An edited command is not run"


def write_number(update: dict[str, dict[str, int]]) -> int:
    return update["message"]["message_id"]


async def press_again(rig: Rig) -> None:
    def offers() -> list[dict[str, object]]:
        return [one for one in rig.buttons() if "Answer again" in labels(one)]

    await rig.telegram.wait(lambda: bool(offers()))
    await rig.quiet()
    rig.press(offers()[-1], "Answer again")


async def answer_again(rig: Rig) -> None:
    asked = len(rig.model.requests)
    await press_again(rig)
    await rig.model.wait(lambda: len(rig.model.requests) > asked)
    await rig.quiet()


async def approve(rig: Rig, command: str) -> None:
    """Let the command run that is asked about."""
    await rig.telegram.wait(lambda: any(command in one["text"] for one in rig.cards()))
    await rig.quiet()
    done = str(rig.said()).count("[exit code 0]")
    rig.press(rig.cards()[-1], "Approve once")
    await rig.telegram.wait(lambda: str(rig.said()).count("[exit code 0]") > done)
    await rig.quiet()


async def edit(rig: Rig, message: int, text: str) -> None:
    rig.telegram.edit(PERSON, message, text)
    await rig.quiet()


@pytest.mark.parametrize("restarted", [False, True])
async def test_an_edited_answer_to_a_question_is_told_once(rig: Rig, restarted: bool) -> None:
    rig.model.script(ASKS, Say("Tuesday it is."))
    await rig.start()
    rig.telegram.say(PERSON, "book it")
    await rig.shows("Which day?")
    await rig.quiet()
    said = write_number(rig.telegram.say(PERSON, "Tuesday"))
    await rig.shows("Tuesday it is.")
    await rig.quiet()
    if restarted:
        await rig.crash()
        await rig.start()
    rig.telegram.edit(PERSON, said, "Tuesday")  # a preview was added: no word is another
    rig.telegram.edit(PERSON, said, "Wednesday")
    await rig.shows(USED)
    await edit(rig, said, "Wednesday!")
    assert len([one for one in rig.said() if USED in one]) == 1


async def test_an_answer_edited_while_it_is_worked_at_is_heard(rig: Rig) -> None:
    rig.model.script(ASKS, Call("ask_user", '{"question": "Which hour?"}'), Say("done"))
    await rig.start()
    rig.telegram.say(PERSON, "book it")
    await rig.shows("Which day?")
    await rig.quiet()
    said = write_number(rig.telegram.say(PERSON, "Tuesday"))
    await rig.shows("Which hour?")
    await rig.quiet()
    rig.model.script(Say("Wednesday then."))
    rig.telegram.edit(PERSON, said, "Wednesday")
    await rig.model.wait(lambda: "changed my message to: Wednesday" in str(rig.seen(role="user")))
    await rig.quiet()


async def test_an_edit_that_changes_no_word_offers_nothing(rig: Rig) -> None:
    await rig.start()
    said = write_number(rig.telegram.say(PERSON, "see https://x.invalid"))
    await rig.shows("ack see")
    await rig.quiet()
    await edit(rig, said, "see https://x.invalid")
    assert len(rig.said()) == 1


async def test_a_second_edit_keeps_what_the_message_replied_to(rig: Rig) -> None:
    await rig.start()
    theirs = write_number(rig.telegram.say(PERSON, "the disk is full"))
    await rig.shows("ack the disk")
    await rig.quiet()
    said = write_number(rig.telegram.say(PERSON, "whyy", reply_to=theirs))
    await rig.shows("whyy")
    await rig.quiet()
    for text in ("why", "why now?", "why now, and since when?"):
        await edit(rig, said, text)
        await answer_again(rig)
        assert rig.seen(role="user")[-1] == f"> U11:\n> the disk is full\n{text}"


async def test_a_second_edit_keeps_the_other_parts(rig: Rig) -> None:
    await rig.start(MESSAGE_BURST="60")
    gate = rig.model.gate = asyncio.Event()
    first = write_number(rig.telegram.say(PERSON, "hey"))
    await rig.model.wait(lambda: rig.model.inflight == 1)
    second = write_number(rig.telegram.say(PERSON, "look at the lgo"))
    await rig.model.wait(lambda: rig.seen(role="user")[-1:] == ["hey\nlook at the lgo"])
    gate.set()
    await rig.shows("ack hey")
    await rig.quiet()
    await edit(rig, second, "look at the log")
    await answer_again(rig)
    assert rig.seen(role="user")[-1] == "hey\nlook at the log"
    await edit(rig, first, "hello")
    await answer_again(rig)
    assert rig.seen(role="user")[-1] == "hello\nlook at the log"
    await edit(rig, second, "look at the logs")
    await answer_again(rig)
    assert rig.seen(role="user")[-1] == "hello\nlook at the logs"


async def test_an_edit_while_something_newer_runs_is_told(rig: Rig) -> None:
    await rig.start()
    said = write_number(rig.telegram.say(PERSON, "tell me of Pairs"))
    await rig.shows("ack tell me")
    await rig.quiet()
    gate = rig.model.gate = asyncio.Event()
    rig.telegram.say(PERSON, "and of Rome")
    await rig.model.wait_inflight(1)
    rig.telegram.edit(PERSON, said, "tell me of Paris")
    await rig.shows(USED)
    gate.set()
    await rig.quiet()


@pytest.mark.parametrize("chat", [PERSON, GROUP])
@pytest.mark.parametrize("later", [1, 3])
async def test_an_edit_after_something_newer_is_told_once(rig: Rig, chat: int, later: int) -> None:
    """Whoever asked for it; not an edit that changes no word, nor one of what was not for it."""
    await rig.start()
    who = FRIEND if chat == GROUP else PERSON
    named = mention("@test_bot")
    first = rig.telegram.say(chat, "@test_bot tell me of Pairs", user=PERSON, **named)
    beside = rig.telegram.say(chat, "lunhc?", user=PERSON) if chat == GROUP else None
    await rig.shows("Pairs", chat)
    for n in range(later):
        rig.telegram.say(chat, f"@test_bot and of Rome {n}", user=who, **named)
        await rig.shows(f"Rome {n}", chat)
        await rig.quiet()
    before = len(rig.said(chat))
    rig.telegram.edit(chat, write_number(first), "@test_bot tell me of Pairs", **named)
    if beside is not None:
        rig.telegram.edit(chat, write_number(beside), "lunch?")
    rig.telegram.edit(chat, write_number(first), "@test_bot tell me of Paris", **named)
    await rig.shows(USED, chat)
    rig.telegram.edit(chat, write_number(first), "@test_bot tell me of Paris!", **named)
    rig.telegram.say(chat, "@test_bot and of Oslo", user=who, **named)
    await rig.shows("Oslo", chat)
    await rig.quiet()
    assert len(rig.said(chat)) == before + 2


@pytest.mark.parametrize("before", ["/mode reserach", "/status", "hello"])
@pytest.mark.parametrize("after", ["/mode research", "/deep", "/new", "/stop"])
async def test_an_edited_command_is_not_run_and_its_person_is_told(
    rig: Rig, before: str, after: str
) -> None:
    await rig.start(QUICK_COMMANDS=QUICK)
    said = write_number(rig.telegram.say(PERSON, before))
    await rig.telegram.wait(lambda: bool(rig.said()))
    await rig.quiet()
    rig.telegram.edit(PERSON, said, after)
    await rig.shows(NOT_RUN)
    await rig.quiet()
    assert len(rig.model.requests) == (before == "hello")
    assert not any("Answer again" in labels(one) for one in rig.buttons())


@pytest.mark.parametrize("way", ["edit", "retry"])
async def test_an_edited_quick_command_is_run_as_it_is_now(rig: Rig, way: str) -> None:
    await rig.start(QUICK_COMMANDS=QUICK)
    said = write_number(rig.telegram.say(PERSON, "/greet Emma"))
    await approve(rig, "hello Emma")
    for name in ("Otto", "Ida; id"):
        if way == "edit":
            await edit(rig, said, f"/greet {name}")
            await press_again(rig)
        else:
            rig.telegram.say(PERSON, f"/retry /greet {name}")
        await approve(rig, f"hello {name}" if name == "Otto" else "hello 'Ida; id'")
        await rig.shows(f"hello {name}")
    assert rig.model.requests == []
    await edit(rig, said, "/translate good day") if way == "edit" else rig.telegram.say(
        PERSON, "/retry /translate good day"
    )
    if way == "edit":
        await press_again(rig)
    await rig.shows("ack Translate into German: good day (exactly)")
    await rig.quiet()
    rig.telegram.say(PERSON, "/retry /stop")
    await rig.shows(NOT_RUN)
    await rig.quiet()
    assert len(rig.model.requests) == 1


async def test_a_waiting_quick_command_is_edited(rig: Rig) -> None:
    await rig.start(QUICK_COMMANDS=QUICK)
    gate = rig.model.gate = asyncio.Event()
    rig.telegram.say(PERSON, "hello")
    await rig.model.wait_inflight(1)
    said = write_number(rig.telegram.say(PERSON, "/greet Emma"))
    await rig.until(lambda: (s := rig.session()) is not None and s.state.queue)
    rig.telegram.edit(PERSON, said, "/greet Otto")
    rig.telegram.edit(PERSON, said, "/stop")
    await rig.shows(NOT_RUN)
    gate.set()
    await approve(rig, "hello Otto")
    assert "hello Emma" not in str(rig.said())
