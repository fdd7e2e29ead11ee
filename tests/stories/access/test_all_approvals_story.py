"""What waits for a person is found and decided from wherever they are."""

from agent_core.context.surroundings import strip_surroundings
from gateway.texts import say
from tests.fakes.model_server import Call, Say
from tests.stories.rig import FRIEND, GROUP, PERSON, Json, Rig, mention, run, write


async def test_from_a_private_chat_all_that_waits_is_listed_and_decided(rig: Rig) -> None:
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start()
    rig.telegram.say(GROUP, "@test_bot write it", user=PERSON, **mention("@test_bot"))
    await rig.card(GROUP)
    await rig.quiet()
    rig.telegram.say(FRIEND, "/approvals")
    await rig.shows("No approvals are pending.", FRIEND)
    rig.telegram.say(PERSON, "/approvals")
    listed = await rig.shows("1. ", PERSON)
    assert "a.txt" in listed["text"] and "Telegram, @test_bot write it" in listed["text"]
    rig.telegram.say(FRIEND, "/approve 1")
    rig.telegram.say(PERSON, "/approve 1")
    await rig.shows("written", GROUP)
    await rig.quiet()
    assert not rig.cards(GROUP), "the card there has changed along"
    rig.telegram.say(PERSON, "/approvals")
    await rig.shows("No approvals are pending.", PERSON)


async def test_in_a_group_nothing_of_other_conversations_is_told(rig: Rig) -> None:
    rig.model.script(write("private.txt"), Say("written"))
    await rig.start()
    rig.telegram.say(PERSON, "write it")
    await rig.card(PERSON)
    await rig.quiet()
    rig.telegram.say(GROUP, "/approvals@test_bot", user=PERSON)
    await rig.shows("No approvals are pending.", GROUP)
    await rig.quiet()
    assert "private.txt" not in str(rig.said(GROUP))


async def test_what_wants_words_is_listed_without_a_number(rig: Rig) -> None:
    rig.model.script(Call("ask_user", '{"question": "Which day?"}'), Say("noted"))
    await rig.start()
    rig.telegram.say(GROUP, "@test_bot a date", user=PERSON, **mention("@test_bot"))
    await rig.shows("Which day?", GROUP)
    await rig.quiet()
    rig.telegram.say(PERSON, "/approvals")
    listed = await rig.shows("Which day? (Telegram", PERSON)
    assert listed["text"].startswith("• ")


async def test_numbers_are_by_age_however_often_the_chat_is_opened(rig: Rig) -> None:
    """What has the number 2 in the list is what `/approve 2` lets run."""

    def answer(body: Json) -> Call | Say:
        last = strip_surroundings(str(body["messages"][-1]["content"]))
        asks = body["messages"][-1]["role"] == "user" and last.startswith("make")
        return run(f"echo {last.split()[1]}") if asks else Say("done")

    rig.model.script(*[answer] * 20)
    await rig.start()
    for n in range(1, 6):
        rig.telegram.say(PERSON, f"make m{n}")
        await rig.card(count=n)
        if n != 4:  # the chat is closed between them
            await rig.quiet()
    rig.telegram.say(PERSON, "/approvals")
    listed = await rig.shows("5. ")
    assert [f"{n}. Run a command: echo m{n}" in listed["text"] for n in range(1, 6)] == [True] * 5
    await rig.quiet()
    rig.telegram.say(PERSON, "/approve 2")
    await rig.shows("done")
    await rig.quiet()
    assert "m2" in rig.seen(role="tool")[-1]
    rig.telegram.say(PERSON, "/approve 2")  # the others keep their numbers
    await rig.shows(say("not_open"))
    await rig.quiet()
    rig.press(rig.cards()[0], "Deny")
    await rig.until(lambda: len(rig.cards()) == 3)
    rig.telegram.say(PERSON, "make m6")
    await rig.card(count=4)
    await rig.quiet()
    for number in (4, 6):
        asked = len(rig.model.requests)
        rig.telegram.say(PERSON, f"/approve {number}")
        await rig.model.wait(lambda asked=asked: len(rig.model.requests) > asked)
        await rig.quiet()
        assert f"m{number}" in rig.seen(role="tool")[-1]
