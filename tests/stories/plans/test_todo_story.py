"""The agent's own list: people see it as a checklist while a turn without a plan goes on. Over
Telegram, the real gateway and model SDK."""

import asyncio
import json

from tests.fakes.model_server import Call, Say
from tests.stories.plan_rig import ASK, asked, hold, pass_on, plan, step_of
from tests.stories.rig import ADMIN, PERSON, Rig, labels


def todo(*items: str) -> Call:
    """The whole list; 'x text' is done, '~ text' running, '- text' skipped."""
    marks = {"x": "done", "~": "running", "-": "skipped"}
    rows = []
    for item in items:
        mark, _, text = item.partition(" ")
        state = marks.get(mark)
        rows.append({"text": text, "state": state} if state else {"text": item})
    return Call("todo", json.dumps({"items": rows} if items else {}))


async def test_the_list_ticks_in_one_message_and_takes_no_edits(rig: Rig) -> None:
    await rig.start()
    rig.workspace(ADMIN).mkdir(parents=True)
    rig.model.script(todo("~ look", "write"), todo("x look", "~ write"), Call("todo", "{}"))
    rig.model.gate = asyncio.Event()
    rig.telegram.say(ADMIN, "tidy up")
    marked = (("◐ 1. look", "☐ 2. write"), ("☑ 1. look", "◐ 2. write"))
    for count, marks in enumerate(marked, 1):
        # it is shown before the model is asked again
        await rig.until(lambda count=count: len(rig.model.requests) == count)  # type: ignore[misc]
        await rig.model.wait_inflight(1)
        old, rig.model.gate = rig.model.gate, asyncio.Event()
        assert old is not None
        old.set()
        for mark in marks:
            await rig.shows(mark, ADMIN)
    checklist = rig.telegram.chats[ADMIN][0]
    assert labels(checklist) == ["Stop"]
    rig.telegram.say(ADMIN, "/todo skip 2")
    await rig.shows("This is the agent's own to-do list.", ADMIN)
    await rig.crash()
    rig.model.gate = None
    rig.model.script(Call("todo", "{}"), todo("x look", "x write"), Say("Tidy."))
    await rig.start()
    await rig.shows("Tidy.", ADMIN)
    await rig.quiet()
    read = [m["content"] for m in rig.model.requests[-1].body["messages"] if m["role"] == "tool"]
    assert read[2] == "- [x] 1: look\n- [~] 2: write", "it reads what it wrote before the crash"
    assert sum("look" in text for text in rig.said(ADMIN)) == 1 and "2/2" in rig.said(ADMIN)[0]
    assert "- [x] 2: write" in (rig.workspace(ADMIN) / ".turnkeeper" / "todo.md").read_text()


async def test_a_stop_ends_the_list(rig: Rig) -> None:
    await rig.start()
    rig.model.script(todo("~ look", "write"))
    rig.model.gate = asyncio.Event()
    rig.telegram.say(PERSON, "tidy up")
    await rig.model.wait_inflight(1)
    old, rig.model.gate = rig.model.gate, asyncio.Event()
    old.set()
    message = await rig.shows("◐ 1. look")
    rig.press(message, "Stop")
    await rig.shows("– 1. look")
    assert "reply_markup" not in rig.telegram.chats[PERSON][0]
    await rig.quiet()


async def test_people_tick_steps_that_have_not_begun_and_the_one_that_runs(rig: Rig) -> None:
    await rig.start()
    steps = plan("a: Look at A", "b < a: Look at B", "c < b: Look at C", "d < c: Look at D")
    rig.model.script(steps)
    await hold(rig, ASK)
    pass_on(rig)
    await rig.shows("◐ 1. Look at A")
    for said, shown in (("done 2", "☑ 2. Look at B"), ("done 1", "☑ 1. Look at A")):
        rig.telegram.say(PERSON, f"/todo {said}")
        await rig.shows(shown)
    good = Say('{"ok": true}')
    rig.model.script(Say("c is seen"), good, Say("d is seen"), good, Say("All."))
    assert rig.model.gate is not None
    gate, rig.model.gate = rig.model.gate, None
    gate.set()
    await rig.shows("All.")
    await rig.quiet()
    done = [name for name in asked(rig) if name in ("a", "b", "c", "d")]
    assert done == ["a", "c", "d"], "what was ticked is not begun"
    told = rig.model.requests[-1].body["messages"][-1]["content"]
    assert "- [x] a: Look at A (ticked in the list)\n- [x] b: Look at B (ticked" in told
    rig.telegram.say(PERSON, "/todo done 1")
    await rig.shows("No plan is running.")


async def test_in_a_step_the_plan_is_the_list(rig: Rig) -> None:
    await rig.start()
    two = plan("a: Look at A", "b < a: Look at B")
    good = Say('{"ok": true}')
    rig.model.script(two, todo("mine"), Say("done"), good, Say("done"), good, Say("All."))
    rig.telegram.say(PERSON, ASK)
    await rig.shows("All.")
    await rig.quiet()
    told = next(r.body for r in rig.model.requests if step_of(r.body) == "check")
    assert "the plan is the list" in str(told["messages"]) and "mine" not in rig.said()[0]
