"""Plans in the chat: a request for several steps over Telegram, the real gateway and model SDK."""

import json
from pathlib import Path

import pytest

from tests.fakes.model_server import Call, Json, Say
from tests.stories.plan_rig import ASK, CHAIN, GOOD, asked, hold, pass_on, plan, step_of
from tests.stories.rig import ADMIN, PERSON, Rig, living, quick, write
from tests.stories.surfaces import Slack, Surface, Telegram, Web


async def test_a_plan_is_in_the_chat_after_one_call_and_ticks(rig: Rig) -> None:
    await rig.start()
    rig.model.script(
        CHAIN, *[Say("came out"), GOOD] * 3, Say("| Host | Limit |\n|---|---|\n| A | 5 |")
    )
    await hold(rig, ASK)
    names = ("Find the hosts", "Compare them", "Write it")
    for n, name in enumerate(names):
        pass_on(rig)
        await rig.shows(f"◐ {n + 1}. {name}")
        assert len(rig.said()) == 1, "nothing but the plan"
        assert f"{n}/3" in rig.said()[0]
        await rig.until(lambda count=2 * n + 2: len(rig.model.requests) == count)
        pass_on(rig)
        await rig.until(lambda count=2 * n + 3: len(rig.model.requests) == count)
    assert asked(rig)[1:] == ["find", "check", "compare", "check", "table", "check"]
    pass_on(rig)
    await rig.shows("☑ 3. Write it")
    await rig.until(lambda: len(rig.model.requests) == 8)
    pass_on(rig)
    await rig.shows("Host")
    await rig.quiet()
    checklist, answer = rig.said()
    assert "3/3" in checklist and "First find the three cheapest hosts" in checklist.splitlines()[0]
    assert "came out" not in answer and "Find the hosts" not in answer


async def test_the_plan_bears_the_name_that_the_model_gave_it(rig: Rig) -> None:
    steps = [
        {"id": name, "description": f"{name} them", "outcome": "it is so", "needs": needs}
        for name, needs in (("find", []), ("sort", ["find"]))
    ]
    named = Say(json.dumps({"title": "Cheapest hosts", "steps": steps}))
    rig.model.script(named, *[Say("came out"), GOOD] * 2, Say("There they are."))
    await rig.start()
    rig.telegram.say(PERSON, ASK)
    await rig.shows("There they are.")
    await rig.quiet()
    (card,) = [text for text in rig.said() if "find them" in text]
    assert card.startswith("☑ Cheapest hosts") and "First find" not in card


async def test_with_debug_the_phases_stand_among_the_tool_lines(rig: Rig) -> None:
    await rig.start(AGENT_DEBUG="on")
    rig.model.script(CHAIN, *[Say("came out"), GOOD] * 3, Say("All is done."))
    rig.telegram.say(PERSON, ASK)
    await rig.shows("All is done.")
    await rig.quiet()
    told = next(text for text in rig.said() if "gather" in text)
    assert "gather: 0 messages" in told and "plan: planned" in told
    assert told.count("verify") == 3 and "verify: compare: done, 2 messages, stop" in told


async def test_what_is_asked_begins_with_what_was_asked_before(rig: Rig) -> None:
    await rig.start()
    rig.model.script(CHAIN, *[Say("came out"), GOOD] * 3, Say("All is done."), Say("next"))
    rig.telegram.say(PERSON, ASK)
    await rig.shows("All is done.")
    rig.telegram.say(PERSON, "and now?")
    await rig.shows("next")
    await rig.quiet()
    main = [request.body for request in rig.model.requests if step_of(request.body) != "check"]
    assert len(main) == 6
    for before, after in zip(main, main[1:], strict=False):
        assert after["messages"][: len(before["messages"])] == before["messages"]
        assert after["tools"] == before["tools"]


async def test_steps_that_need_not_wait_run_at_once(rig: Rig) -> None:
    await rig.start()

    def answer(body: Json) -> Say:
        return GOOD if step_of(body) == "check" else Say(f"{step_of(body)} came out")

    three = plan("a: Look at A", "b: Look at B", "c < a b: Compare")
    rig.model.script(three, *[answer] * 6, Say("Both were compared."))
    await hold(rig, ASK)
    pass_on(rig)
    await rig.until(lambda: len(rig.model.requests) == 3)
    assert sorted(asked(rig)[1:]) == ["a", "b"], "both are asked, neither is answered"
    await rig.until(lambda: rig.said() and rig.said()[0].count("◐") == 3)
    assert rig.model.gate is not None
    rig.model.gate.set()
    await rig.shows("Both were compared.")
    await rig.quiet()
    third = next(r.body for r in rig.model.requests if step_of(r.body) == "c")
    told = [m["content"] for m in third["messages"] if m["role"] == "assistant"]
    assert told[1:] == ["a came out", "b came out"], "in the plan's order"


async def test_a_step_whose_check_fails_is_planned_anew_where_all_can_see(rig: Rig) -> None:
    await rig.start()
    bad = Say('{"ok": false, "why": "two hosts are missing"}')
    rig.model.script(
        CHAIN, Say("I found one."), bad,
        plan("search: Search elsewhere", "table < search: Write it"),
        Say("three found"), GOOD, Say("written"), GOOD, Say("Here it is."),
    )  # fmt: skip
    rig.telegram.say(PERSON, ASK)
    await rig.shows("Here it is.")
    await rig.quiet()
    checklist = rig.said()[0]
    assert "✕ 1. Find the hosts (two hosts are missing)" in checklist, checklist
    assert "– 2. Compare them" in checklist, "dropped"
    assert "☑ 3. Search elsewhere" in checklist and "☑ 4. Write it" in checklist
    again = next(r.body for r in rig.model.requests if step_of(r.body) == "[Planning again]")
    assert "The step find failed: two hosts are missing" in again["messages"][-1]["content"]


async def test_a_file_that_was_not_written_is_missed_without_a_model(rig: Rig) -> None:
    await rig.start()
    first: Json = {"id": "w", "description": "Write a.txt", "outcome": "x", "files": ["a.txt"]}
    rig.model.script(
        plan(first, "r < w: Read it"), Say("I wrote a.txt."),
        plan(first | {"id": "w"}, "r < w: Read it"), write("a.txt", "hello"), Say("written"), GOOD,
        Say("read"), GOOD, Say("It says hello."),
    )  # fmt: skip
    rig.telegram.say(ADMIN, ASK)
    await rig.shows("It says hello.", ADMIN)
    await rig.quiet()
    assert asked(rig)[:4] == ["[Planning]", "w", "[Planning again]", "w-2"]
    assert "The file a.txt is missing." in rig.said(ADMIN)[0]


async def test_after_three_re_plans_it_says_what_is_not_done(rig: Rig) -> None:
    await rig.start()
    bad = Say('{"ok": false, "why": "nothing there"}')
    again = plan("find: Find the hosts", "table < find: Write it")
    rig.model.script(CHAIN, *[Say("none"), bad, again] * 3, Say("none"), bad, Say("I could not."))
    rig.telegram.say(PERSON, ASK)
    await rig.shows("I could not.")
    await rig.quiet()
    assert asked(rig).count("[Planning again]") == 3
    assert "☑" not in rig.said()[0] and rig.said()[0].startswith("✕ First find")


async def test_no_plan_no_harm(rig: Rig) -> None:
    """A model that makes no plan, twice: the request is answered as any other."""
    await rig.start()
    rig.model.script(Say("I would rather not."), Say("{}"), Say("Just the answer."))
    rig.telegram.say(PERSON, ASK)
    await rig.shows("Just the answer.")
    await rig.quiet()
    assert rig.said() == ["Just the answer."]
    assert "not JSON" in rig.model.requests[1].body["messages"][-1]["content"]
    assert rig.seen(2)[-1] == ASK


async def test_a_stop_in_the_middle_ends_the_plan(rig: Rig) -> None:
    await rig.start()
    rig.model.script(CHAIN, Say("found"), GOOD)
    await hold(rig, ASK)
    for count in (2, 3, 4):
        pass_on(rig)
        await rig.until(lambda count=count: len(rig.model.requests) == count)
    await rig.shows("◐ 2. Compare them")
    rig.telegram.say(PERSON, "/stop")
    await rig.shows("Stopped.")
    await rig.shows("– 2. Compare them")
    await rig.quiet()
    checklist = rig.said()[0]
    assert "☑ 1. Find the hosts" in checklist and "– 3. Write it" in checklist
    rig.model.gate = None
    rig.telegram.say(PERSON, "what was that?")
    await rig.shows("ack what was that?")
    assert [m["role"] for m in rig.model.requests[-1].body["messages"]][1:] == [
        "user", "assistant", "user",
    ], "what was done joins the conversation, what was planned and checked does not"  # fmt: skip
    assert rig.seen(role="assistant") == ["found"]
    await rig.quiet()


async def test_a_crash_goes_on_in_the_same_message(rig: Rig) -> None:
    await rig.start()
    question = {"question": "which?", "kind": "decision", "options": ["all", "some"]}
    rig.model.script(CHAIN, Say("found"), GOOD, Call("ask_user", json.dumps(question)))
    rig.telegram.say(PERSON, ASK)
    card = await rig.card()
    await rig.crash()
    before = rig.telegram.chats[PERSON][0]["message_id"]
    rig.model.script(Say("compared"), GOOD, Say("written"), GOOD, Say("There you are."))
    await rig.start()
    rig.press(card, "all")
    await rig.shows("There you are.")
    await rig.quiet()
    assert asked(rig).count("find") == 1, "what was done is not done again"
    first = rig.telegram.chats[PERSON][0]
    assert first["message_id"] == before and "3/3" in first["text"]
    assert sum("Find the hosts" in text for text in rig.said()) == 1


@pytest.mark.parametrize("on", [Telegram, Web, Slack])
async def test_on_both_surfaces_the_plan_stands_above_its_answer(
    on: type[Surface], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while a step waits for a person, it goes on in the same checklist."""
    quick(monkeypatch)
    question = {"question": "which?", "kind": "decision", "options": ["all", "some"]}
    async with living(tmp_path) as rig:
        surface = on(rig, crash_at="a step asks")
        await surface.open()
        try:
            surface.answers(
                **{
                    "[Planning]": [CHAIN],
                    "nothing else:\nfind": [Say("found")],
                    "nothing else:\ncompare": [Call("ask_user", json.dumps(question)), Say("so")],
                    "nothing else:\ntable": [Say("written")],
                    "Step: ": [GOOD],
                    "[Finishing]": [Say("There you are.")],
                }
            )
            await surface.say(ASK)
            await surface.card("which?")
            await surface.rest("a step asks")
            await surface.press("all")
            await surface.shows("There you are.")
            await surface.settle()
            screen = surface.screen()
            if isinstance(surface, Web):  # it names no views of this kind
                views = [row["view"] for row in surface._views.values()]
                (checklist,) = [view for view in views if view["kind"] == "plan"]
                assert [step["state"] for step in checklist["steps"]] == ["done"] * 3
                assert checklist["state"] == "done"
                at = next(n for n, one in enumerate(screen) if "Find the hosts" in one)
            else:
                ((at, text),) = [one for one in enumerate(screen) if "Find the hosts" in one[1]]
                assert "3/3" in text
        finally:
            await surface.close()
        assert asked(rig).count("find") == 1
    assert "There you are." in screen[-1] and at < len(screen) - 1
