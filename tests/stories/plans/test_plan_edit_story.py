"""People change a plan: by its buttons and /todo while it runs, and before it runs where they want
to see it first. Over Telegram, the real gateway and model SDK."""

import asyncio
import json
from pathlib import Path

import pytest

from gateway.texts import say
from tests.fakes.model_server import Call, Say
from tests.stories.plan_rig import ASK, CHAIN, GOOD, asked, hold, pass_on, plan, step_of
from tests.stories.rig import (
    FRIEND,
    GROUP,
    PERSON,
    Json,
    Rig,
    labels,
    living,
    mention,
    write,
)
from tests.stories.surfaces import Web


async def begun(rig: Rig, *answers: Say | Call, steps: Say = CHAIN) -> None:
    """A plan whose first step's model call is under way, and answers for what comes after it."""
    rig.model.script(steps, *answers)
    await hold(rig, ASK)
    pass_on(rig)
    await rig.until(lambda: len(rig.model.requests) == 2)
    await rig.shows("◐ 1. Find the hosts")


def freely(rig: Rig) -> None:
    """All that waits and all that comes is answered at once."""
    gate, rig.model.gate = rig.model.gate, None
    assert gate is not None
    gate.set()


async def test_a_step_is_skipped_while_its_model_call_hangs(rig: Rig) -> None:
    await rig.start()
    await begun(rig, Say("never heard"), Say("compared"), GOOD, Say("written"), GOOD, Say("All."))
    assert labels(rig.plan()) == ["Skip 1", "Edit", "Stop"]
    rig.press(rig.plan(), "Skip 1")
    await rig.shows("◐ 2. Compare them")
    assert "– 1. Find the hosts" in rig.said()[0]
    freely(rig)
    await rig.shows("All.")
    await rig.quiet()
    assert "never heard" not in str(rig.model.requests[-1].body), "it was not waited for"
    assert "2/3" in rig.said()[0] or "3/3" in rig.said()[0]


async def test_a_step_is_skipped_while_it_is_checked(rig: Rig) -> None:
    await rig.start()
    await begun(rig, Say("found"), Say("never heard"), Say("so"), GOOD, Say("x"), GOOD, Say("All."))
    pass_on(rig)
    await rig.until(lambda: asked(rig)[-1] == "check")
    rig.press(rig.plan(), "Skip 1")
    await rig.shows("◐ 2. Compare them")
    freely(rig)
    await rig.shows("All.")
    await rig.quiet()
    assert "– 1. Find the hosts" in rig.said()[0]


async def test_the_plan_is_added_to_reordered_and_dropped_from(rig: Rig) -> None:
    await rig.start()

    def answer(body: Json) -> Say:
        step = step_of(body)
        said = {"check": '{"ok": true}', "[Finishing]": "There it is."}
        return Say(said.get(step, f"{step} came out"))

    four = plan("find: Find", "b < find: Look at B", "c < find: Look at C", "d < find: Look at D")
    rig.model.script(four, *[answer] * 12)
    await hold(rig, ASK)
    pass_on(rig)
    await rig.shows("◐ 1. Find")
    for words, shown, told in (
        ("add tell Bob", "Look at D ☐ 5. tell Bob", "Added as step 5: tell Bob"),
        ("move 4 3", "Look at B ☐ 3. Look at D ☐ 4. Look at C", "Now step 3: Look at D"),
        ("insert 3 measure it", "Look at B ☐ 3. measure it ☐ 4. Look at D", "Added as step 3: m"),
        ("drop 2", "Find ☐ 2. measure it", "Step 2 is removed: Look at B"),
        ("skip 3", "– 3. Look at D", "Step 3 is skipped: Look at D"),
        ("retry 3", "☐ 3. Look at D", "Step 3 is retried: Look at D"),
    ):
        rig.telegram.say(PERSON, f"/todo {words}")
        await rig.until(lambda text=shown: text in rig.said()[0].replace("\n", " "), words)
        await rig.shows(told)
    rig.telegram.say(PERSON, "/todo")
    listed = await rig.shows("1. ◐ Find")
    assert "5. ☐ tell Bob" in listed["text"] and "Look at B" not in listed["text"]
    freely(rig)
    await rig.shows("There it is.")
    await rig.quiet()
    did = [step for step in asked(rig)[1:] if step not in ("check", "[Finishing]")]
    assert did == ["find", "own2", "d", "c", "own1"], did


async def test_what_cannot_be_changed_is_said(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "/todo skip 1")
    await rig.shows("No plan is running.")
    await begun(rig, Say("found"), GOOD, *[Say("x"), GOOD] * 2, Say("All."))
    for words, said in (
        ("drop 1", "has already started or ended"),
        ("retry 1", "Only a failed or skipped step"),
        ("skip 9", "There is no step 9; the last one is 3. Change it with /todo"),
        ("move 3 2", "one of the steps depends on the other"),
        ("sing", "Change it with /todo"),
    ):
        rig.telegram.say(PERSON, f"/todo {words}")
        await rig.shows(said)
    freely(rig)
    await rig.shows("All.")


async def test_its_stop_button_ends_the_turn(rig: Rig) -> None:
    await rig.start()
    await begun(rig, Say("never"))
    rig.press(rig.plan(), "Stop")
    await rig.shows("– 1. Find the hosts")
    await rig.quiet()
    assert "Skip 1" not in str(rig.telegram.chats[PERSON][0].get("reply_markup")), "no buttons left"


async def test_what_failed_for_good_is_tried_again_by_a_press(rig: Rig) -> None:
    await rig.start()
    bad, none = Say('{"ok": false, "why": "nobody there"}'), Say('{"steps": []}')
    rig.model.script(
        CHAIN, Say("hm"), bad, none, Say("It did not work."), CHAIN, *[Say("x"), GOOD] * 3,
        Say("Now it did."),
    )  # fmt: skip
    rig.telegram.say(PERSON, ASK)
    await rig.shows("It did not work.")
    await rig.quiet()
    assert labels(rig.plan()) == ["Retry 1"]
    rig.press(rig.plan(), "Retry 1")
    await rig.shows("Now it did.")
    await rig.quiet()
    said = rig.seen(5, "user")[-1]
    assert "[Planning]" in said and "try this again: Find the hosts" in said
    assert "nobody there" in said and "1. Compare them\n2. Write it" in said, "and what waited"


async def test_another_person_does_not_try_again_what_failed(rig: Rig) -> None:
    await rig.start()
    bad, none = Say('{"ok": false, "why": "nobody there"}'), Say('{"steps": []}')
    rig.model.script(CHAIN, Say("hm"), bad, none, Say("It did not work."))
    rig.telegram.say(GROUP, f"@test_bot {ASK}", user=PERSON, **mention("@test_bot"))
    await rig.shows("It did not work.", GROUP)
    await rig.quiet()
    word = await rig.told(rig.press(rig.plan(GROUP), "Retry 1", FRIEND))
    assert "The plan is finished" in word
    await rig.quiet()
    assert len(rig.model.requests) == 5, "no turn began"


async def test_trying_again_counts_as_a_turn_where_turns_are_counted(rig: Rig) -> None:
    await rig.start(QUOTA_TURNS_PER_HOUR="1", TELEGRAM_ADMIN_USERS="")
    bad, none = Say('{"ok": false, "why": "nobody there"}'), Say('{"steps": []}')
    rig.model.script(CHAIN, Say("hm"), bad, none, Say("It did not work."))
    rig.telegram.say(PERSON, ASK)
    await rig.shows("It did not work.")
    await rig.quiet()
    word = await rig.told(rig.press(rig.plan(), "Retry 1"))
    assert "the limit of 1 request an hour" in word
    await rig.quiet()
    assert len(rig.model.requests) == 5, "no turn began"


async def test_who_may_only_read_by_now_does_not_change_it(rig: Rig) -> None:
    await rig.start()
    await begun(rig, Say("never heard"))
    await rig.crash()
    rig.model.gate = asyncio.Event()
    await rig.start(TELEGRAM_ALLOWED_USERS=str(FRIEND), TELEGRAM_VIEWER_USERS=str(PERSON))
    assert await rig.told(rig.press(rig.plan(), "Stop")) == say("not_allowed")
    assert "◐ 1. Find the hosts" in rig.said()[0]


async def test_what_is_changed_while_a_plan_is_made_anew_counts(rig: Rig) -> None:
    await rig.start()
    bad = Say('{"ok": false, "why": "none there"}')
    anew = plan("search: Search elsewhere", "table: Write it")
    await begun(rig, Say("hm"), bad, anew, Say("three"), GOOD, Say("There you are."))
    for _ in range(2):
        count = len(rig.model.requests)
        pass_on(rig)
        await rig.until(lambda count=count: len(rig.model.requests) > count)
    assert asked(rig)[-1] == "[Planning again]"
    rig.telegram.say(PERSON, "/todo skip 3")
    await rig.shows("– 3. Write it")
    freely(rig)
    await rig.shows("There you are.")
    await rig.quiet()
    assert "table" not in asked(rig), "it was skipped before the new plan stood"


async def test_in_a_group_only_who_asked_changes_it(rig: Rig) -> None:
    await rig.start()
    rig.model.script(CHAIN, *[Say("x"), GOOD] * 3, Say("All."))
    rig.model.gate = asyncio.Event()
    rig.telegram.say(GROUP, f"@test_bot {ASK}", user=PERSON, **mention("@test_bot"))
    await rig.model.wait_inflight(1)
    pass_on(rig)
    await rig.until(lambda: rig.telegram.chats[GROUP])
    await rig.shows("◐ 1. Find the hosts", GROUP)
    word = await rig.told(rig.press(rig.plan(GROUP), "Skip 1", FRIEND))
    assert word and "◐ 1. Find the hosts" in rig.said(GROUP)[0]
    word = await rig.told(rig.press(rig.plan(GROUP), "Stop", FRIEND))
    assert word and "◐ 1. Find the hosts" in rig.said(GROUP)[0]
    freely(rig)
    await rig.shows("All.", GROUP)


async def test_a_step_that_waits_for_a_person_is_skipped_after_a_restart(rig: Rig) -> None:
    await rig.start()
    rig.model.script(CHAIN, write("a.txt"))
    rig.telegram.say(PERSON, ASK)
    await rig.card()
    await rig.quiet()
    await rig.crash()
    rig.model.script(Say("compared"), GOOD, Say("written"), GOOD, Say("All."))
    await rig.start()
    rig.press(rig.plan(), "Skip 1")
    await rig.shows("All.")
    await rig.quiet()
    assert not (rig.workspace() / "a.txt").exists() and rig.cards() == []
    assert "– 1. Find the hosts" in rig.said()[0] and "☑ 2. Compare them" in rig.said()[0]


# ---- shown before it runs -----------------------------------------------------------------


async def test_a_plan_waits_for_a_person_over_a_restart(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "/plan on")
    await rig.shows("I show you plans before anything runs")
    rig.model.script(CHAIN)
    rig.telegram.say(PERSON, ASK)
    card = await rig.card()
    assert labels(card) == ["Go", "Edit", "Cancel"] and "☐ 1. Find the hosts" in card["text"]
    await rig.quiet()
    assert len(rig.model.requests) == 1, "nothing has run"
    await rig.crash()
    rig.model.script(*[Say("x"), GOOD] * 2, Say("All."))
    await rig.start()
    rig.telegram.say(PERSON, "/status")
    await rig.shows(f"{say('waits')}.")
    rig.telegram.say(PERSON, "/todo drop 2")
    await rig.until(lambda: "Compare them" not in rig.cards()[0]["text"])
    rig.press(rig.cards()[0], "Go")
    await rig.shows("All.")
    await rig.quiet()
    assert [step for step in asked(rig) if step in ("find", "compare", "table")] == [
        "find",
        "table",
    ]
    rig.telegram.say(PERSON, "/status")
    await rig.shows(f"{say('idle')}.")


async def test_a_plan_is_changed_by_words_before_it_runs(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "/plan on")
    await rig.shows("I show you plans")
    rig.model.script(CHAIN, plan("own: Only this", "more: And that"))
    rig.telegram.say(PERSON, ASK)
    card = await rig.card()
    assert "Write what to change" in await rig.told(rig.press(card, "Edit"))
    rig.telegram.say(PERSON, "leave the table out")
    await rig.shows("☐ 1. Only this")
    assert "Find the hosts" not in rig.cards()[0]["text"]
    assert "leave the table out" in rig.seen()[-1]
    rig.press(rig.cards()[0], "Cancel")
    await rig.until(lambda: rig.cards() == [])
    await rig.quiet()
    assert len(rig.model.requests) == 2, "nothing has run"
    assert rig.said()[-1] == "Stopped." and "– 1. Only this" in str(rig.said()), "and no answer"


async def test_a_plan_that_nobody_approves_runs_nothing(rig: Rig) -> None:
    await rig.start(QUESTION_EXPIRES="1")
    rig.telegram.say(PERSON, "/plan on")
    await rig.shows("I show you plans")
    rig.model.script(CHAIN)
    rig.telegram.say(PERSON, ASK)
    await rig.shows("The plan expired without approval")
    await rig.quiet()
    assert len(rig.model.requests) == 1 and rig.cards() == []


# ---- plans that come about on the way -------------------------------------------------------


async def test_the_model_sees_that_it_takes_a_plan(rig: Rig) -> None:
    await rig.start()
    steps = [
        {"id": "one", "description": "Do the one", "outcome": "one is there"},
        {"id": "two", "description": "Do the other", "needs": ["one"], "outcome": "two is there"},
    ]
    rig.model.script(
        Call("task_planning", json.dumps({"steps": steps})),
        Call("task_planning", json.dumps({"steps": steps})), Say("one came out"), GOOD,
        Say("two came out"), GOOD, Say("Both are there."),
    )  # fmt: skip
    rig.telegram.say(PERSON, "please")
    await rig.shows("Both are there.")
    await rig.quiet()
    assert "☑ 1. Do the one" in str(rig.said()) and "☑ 2. Do the other" in str(rig.said())
    within = next(text for text in rig.seen(2, "tool") if "step of a plan" in text)
    assert "without another plan" in within


async def test_going_in_circles_is_noticed_and_said_to_the_model(rig: Rig) -> None:
    await rig.start()
    again = Call("list_files", '{"path": "."}')
    rig.model.script(again, again, again, Say("I stop looking."))
    rig.telegram.say(PERSON, "look")
    await rig.shows("I stop looking.")
    assert [("[Going in circles]" in str(r.body)) for r in rig.model.requests] == [
        False, False, False, True,
    ]  # fmt: skip


async def test_five_errors_in_a_row_lead_to_a_plan(rig: Rig) -> None:
    await rig.start()
    wrong = [Call("read_file", json.dumps({"path": f"{n}.txt"})) for n in range(5)]
    rescue = plan("ask: Look elsewhere", "tell < ask: Tell it")
    rig.model.script(*wrong, rescue, *[Say("x"), GOOD] * 2, Say("It is not there."))
    rig.telegram.say(PERSON, "read it")
    await rig.shows("It is not there.")
    await rig.quiet()
    asked_for = rig.seen(5, "user")[-1]
    assert "5 errors in a row" in asked_for and "[Planning]" in asked_for
    assert "☑ 1. Look elsewhere" in str(rig.said())


@pytest.mark.parametrize("way", ["unasked", "after a press", "with the press"])
@pytest.mark.parametrize("crash", [False, True])
async def test_the_page_shows_with_which_words_a_plan_was_changed(
    tmp_path: Path, way: str, crash: bool
) -> None:
    words = "only those in Bern"
    async with living(tmp_path) as rig:
        person = Web(rig)
        again = plan("find: Find those in Bern")
        person.answers(**{"[Planning again]": [again], "[Planning]": [CHAIN]})
        await person.open()
        await person.command("/plan on")
        await person.say(ASK)
        await person.card("Find the hosts")
        if way == "with the press":
            await person.press("Edit", words)
        else:
            if way == "after a press":
                await person.press("Edit")
                await person.told("Write what to change")
            await person.say(words)
        await person.card("Find those in Bern")
        if crash:
            await rig.quiet()
            await person.restart()
        await person.settle()
        said = [line for line in person.screen() if line.startswith("owner: ")]
        assert said == ["owner: /plan on", f"owner: {ASK}", f"owner: {words}"]
        await person.close()


@pytest.mark.parametrize("mark", ["[Planning]", "Step: "])
async def test_a_call_in_an_answer_that_allows_none_is_not_shown(tmp_path: Path, mark: str) -> None:
    """Such a call is never run, so its line would be at work for ever."""
    call = Call("run_command", '{"command": "echo never"}', text="I run it.")
    right = {"[Planning]": CHAIN, "Step: ": GOOD}
    async with living(tmp_path) as rig:
        person = Web(rig)
        lines = {one: [step] for one, step in right.items()} | {mark: [call]}
        person.answers(
            **lines, **{"That cannot be used": [right[mark]], "[Finishing]": [Say("All.")]}
        )
        await person.open()
        await person.say(ASK)
        await person.shows("All.")
        await person.settle()
        assert "echo never" not in str(person.screen()) and "I run it" not in str(person.screen())
        assert "That cannot be used" in str([one.body for one in rig.model.requests])
        await person.close()
