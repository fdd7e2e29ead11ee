"""Buttons of messages so old that Telegram no longer tells in which topic they are: they act there,
or say why not."""

from collections.abc import Awaitable, Callable

import pytest

from gateway.command_texts import drop_marks
from gateway.texts import say
from tests.fakes.model_server import Call, Fail, Say
from tests.stories.plan_rig import ASK, CHAIN
from tests.stories.rig import FRIEND, GROUP, PERSON, Json, Rig, mention, write

BAD, NONE = Say('{"ok": false, "why": "nobody there"}'), Say('{"steps": []}')
LOOK = Call("list_files", '{"path": "."}')


async def ask(rig: Rig, thread: int, text: str, answer: str) -> None:
    """Somebody asks in the topic, and all that follows is there."""
    asked = mention("@test_bot")
    rig.telegram.say(GROUP, f"@test_bot {text}", user=PERSON, thread=thread, **asked)
    await rig.shows(answer, GROUP)
    await rig.quiet()


async def fail(rig: Rig, thread: int) -> Json:
    rig.model.script(Fail(401))
    await ask(rig, thread, "hello", "rejected the API key")
    return rig.buttons(GROUP)[-1]


async def run_out(rig: Rig, thread: int) -> Json:
    rig.model.script(LOOK, LOOK, Say("What I know."))
    await ask(rig, thread, "look", "Stopped: the limit")
    return rig.buttons(GROUP)[-1]


async def fail_plan(rig: Rig, thread: int) -> Json:
    rig.model.script(CHAIN, Say("hm"), BAD, NONE, Say("It did not work."))
    await ask(rig, thread, ASK, "It did not work.")
    return rig.plan(GROUP)


@pytest.mark.parametrize("thread", [5, 0])
@pytest.mark.parametrize(
    ("prepare", "label"), [(fail, "Retry"), (run_out, "Continue"), (fail_plan, "Retry 1")]
)
async def test_a_button_of_a_turn_acts_in_its_topic(
    rig: Rig, prepare: Callable[[Rig, int], Awaitable[Json]], label: str, thread: int
) -> None:
    await rig.start(AGENT_MAX_TURNS="2" if label == "Continue" else "90")
    card = await prepare(rig, thread)
    again = (CHAIN, Say("hm"), BAD, NONE) if prepare is fail_plan else ()
    rig.model.script(*again, Say("Here it is."))
    strange = rig.press(card, label, FRIEND, chat=-100_777, old=True)
    assert await rig.told(strange), "of another chat it is not"
    assert await rig.told(rig.press(card, label, old=True)) == ""
    answer = await rig.shows("Here it is.", GROUP)
    assert int(answer.get("message_thread_id") or 0) == thread


@pytest.mark.parametrize("thread", [5, 0])
async def test_a_button_of_a_job_acts_in_its_topic(rig: Rig, thread: int) -> None:
    await rig.start()
    made = "/jobs@test_bot add every 2h: look at it"
    rig.telegram.say(GROUP, made, user=PERSON, thread=thread)
    card = await rig.shows("look at it", GROUP)
    await rig.quiet()
    rig.model.script(Say("It is up."))
    strange = rig.press(card, "Run now", FRIEND, chat=-100_777, old=True)
    assert await rig.told(strange), "of another chat it is not"
    assert await rig.told(rig.press(card, "Run now", old=True)) == ""
    report = await rig.shows("It is up.", GROUP)
    assert int(report.get("message_thread_id") or 0) == thread


@pytest.mark.parametrize("thread", [5, 0])
async def test_a_rule_of_another_topic_is_not_said_to_be_gone(rig: Rig, thread: int) -> None:
    rig.model.script(write("a.txt"), Say("written"), write("a.txt", "y"), Say("once more"))
    await rig.start()
    asked = mention("@test_bot")
    rig.telegram.say(GROUP, "@test_bot write it", user=PERSON, thread=thread, **asked)
    rig.press(await rig.card(GROUP), "Approve in this conversation")
    await rig.shows("written", GROUP)
    await rig.quiet()
    rig.telegram.say(GROUP, "/permissions@test_bot", user=PERSON, thread=thread)
    card = await rig.shows(say("grants_are"), GROUP)
    await rig.quiet()
    told = await rig.told(rig.press(card, "Revoke 1", old=True))
    if thread:
        assert told.startswith(drop_marks(say("grant_elsewhere"))[:60])
        await ask(rig, thread, "again", "once more")  # unasked: the rule is in force
    else:
        assert told.startswith("Revoked")
