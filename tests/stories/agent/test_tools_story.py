"""What tools do for people: undoing, commands in the background, the operator's hooks."""

import json
import re
import signal
from pathlib import Path

import pytest

from agent_core.tools.files import WriteFileArguments
from agent_core.tools.files import write as write_now
from tests.fakes.model_server import Call, Hang, Json, Say
from tests.fakes.model_steps import Step
from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.processes import a_mark, alive, gone, there
from tests.gateway.process import START, World
from tests.stories.rig import PERSON, Rig, write


def back(path: str = "a.txt") -> Call:
    return Call("rollback", json.dumps({"path": path}))


def behind(mark: str) -> Call:
    """A command in the background with two processes that say `mark`."""
    arguments = {"command": f"sleep {mark} & sleep {mark}", "background": True}
    return Call("run_command", json.dumps(arguments))


def handle(body: Json) -> str:
    """The newest handle that the model was told."""
    return re.findall(r"command-\w{5}", json.dumps(body["messages"]))[-1]


def check(action: str) -> Step:
    return lambda body: Call(
        "check_command", json.dumps({"handle": handle(body), "action": action})
    )


# ---- undoing -----------------------------------------------------------------------------


async def test_the_diff_is_on_the_card_and_undoing_too_is_approved(rig: Rig) -> None:
    await rig.start()
    rig.workspace().mkdir(parents=True)
    (rig.workspace() / "a.txt").write_text("one\n")
    rig.model.script(write("a.txt", "two\\n"), Say("written"), back(), Say("As before"))
    rig.telegram.say(PERSON, "write it")
    card = await rig.card()
    assert "-one" in card["text"] and "+two" in card["text"]
    rig.press(card, "Approve")
    await rig.shows("written")
    rig.telegram.say(PERSON, "undo it")
    await rig.until(lambda: rig.cards() and "earlier version" in rig.cards()[-1]["text"])
    card = rig.cards()[-1]
    assert "-two" in card["text"] and "+one" in card["text"]
    assert (rig.workspace() / "a.txt").read_text() == "two\n", "not before somebody says so"
    rig.press(card, "Approve")
    await rig.shows("As before")
    assert (rig.workspace() / "a.txt").read_text() == "one\n"
    assert "+one" in rig.seen(role="tool")[-1]
    await rig.quiet()


async def test_an_approved_undo_is_not_another_one(rig: Rig) -> None:
    """The file is written again between the card and the press."""
    await rig.start()
    rig.workspace().mkdir(parents=True)
    for content in ("one\n", "two\n"):
        write_now(WriteFileArguments(path="a.txt", content=content), rig.workspace())
    rig.model.script(back(), Say("not undone"))
    rig.telegram.say(PERSON, "undo it")
    card = await rig.card()
    write_now(WriteFileArguments(path="a.txt", content="three\n"), rig.workspace())
    rig.press(card, "Approve")
    await rig.until(lambda: rig.cards() and rig.cards()[-1]["message_id"] != card["message_id"])
    again = rig.cards()[-1]
    assert "changed since it was approved" in again["text"] and "-three" in again["text"]
    rig.press(again, "Deny")
    await rig.shows("not undone")
    assert (rig.workspace() / "a.txt").read_text() == "three\n"
    await rig.quiet()


# ---- in the background -------------------------------------------------------------------


async def test_it_runs_on_after_the_turn_and_ends_with_the_gateway(rig: Rig) -> None:
    mark = a_mark()
    rig.model.script(behind(mark), check("read"), Say("it runs"))
    await rig.start()
    rig.telegram.say(PERSON, "serve it")
    card = await rig.card()
    assert "keeps running in the background" in card["text"]
    rig.press(card, "Approve")
    await rig.shows("it runs")
    await rig.quiet()
    assert "has been running" in rig.seen(role="tool")[-1]
    asked = [detail for _, what, detail in await rig.audit() if what == "asked"]
    assert len(asked) == 1, "to look at it needs nobody"
    await there(mark)
    await rig.stop()
    await gone(mark)
    rig.model.script(check("wait"), Say("it is gone"))
    await rig.start()
    rig.telegram.say(PERSON, "how is it?")
    await rig.shows("it is gone")
    assert "the process is gone" in rig.seen(role="tool")[-1]
    await rig.quiet()


async def test_a_later_turn_may_stop_it(rig: Rig) -> None:
    mark = a_mark()
    rig.model.script(behind(mark), Say("started"), check("stop"), Say("stopped it"))
    await rig.start()
    rig.telegram.say(PERSON, "serve it")
    rig.press(await rig.card(), "Approve")
    await rig.shows("started")
    await there(mark)
    rig.telegram.say(PERSON, "end it")
    await rig.shows("stopped it")
    assert rig.seen(role="tool")[-1] == "(no output)\n[stopped]"
    await gone(mark)
    await rig.quiet()


async def test_stop_takes_it_along(rig: Rig) -> None:
    mark = a_mark()
    rig.model.script(behind(mark), Hang())
    await rig.start()
    rig.telegram.say(PERSON, "serve it")
    rig.press(await rig.card(), "Approve")
    await there(mark)
    await rig.model.wait_inflight(1)
    rig.telegram.say(PERSON, "/stop")
    await gone(mark)
    await rig.quiet()


@pytest.mark.pick("a command that outlives its gateway")
@pytest.mark.parametrize("how", ["background", "foreground"])
@pytest.mark.parametrize("tier", [pytest.param("bwrap", marks=NEEDS_BWRAP), "unsafe-subprocess"])
async def test_no_command_outlives_a_gateway_that_is_killed(
    world: World, tier: str, how: str
) -> None:
    mark = a_mark()
    arguments = {"command": f"sleep {mark} & sleep {mark}; echo never", "timeout": 500}
    arguments |= {"background": True} if how == "background" else {}
    world.model.script(Call("run_command", json.dumps(arguments)), Hang())
    run = await world.start(SANDBOX_PROVIDER=tier)
    world.telegram.say(PERSON, "serve it")
    await world.telegram.wait(lambda: bool(cards(world)), START)
    card = cards(world)[0]
    button = card["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
    world.telegram.press(PERSON, card["message_id"], button)
    await there(mark)
    assert len(alive(mark)) >= 1
    assert await run.end(signal.SIGKILL) == -signal.SIGKILL
    await gone(mark)


def cards(world: World) -> list[Json]:
    return [message for message in world.telegram.chats[PERSON] if "reply_markup" in message]


async def test_longer_than_the_policy_allows(rig: Rig) -> None:
    rig.model.script(Call("run_command", '{"command": "ls", "timeout": 61}'), Say("too long"))
    await rig.start(COMMAND_MAX_SECONDS="60")
    rig.telegram.say(PERSON, "go")
    await rig.shows("too long")
    assert "at most 60 s here, not 61 (COMMAND_MAX_SECONDS)" in rig.seen(role="tool")[-1]
    assert rig.cards() == []
    await rig.quiet()


# ---- hooks -------------------------------------------------------------------------------

RULES = """
from pathlib import Path

def pre_tool_call(call):
    with Path(__file__).with_suffix(".asked").open("a") as file:
        file.write(call.name + "\\n")
    return "files are frozen this week" if call.arguments.get("path") == "frozen" else None

async def post_tool_call(call, result):
    return result.replace("hunter2", "[secret]")
"""


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The setting; the module is called like its folder, so that no other test has it."""
    name = f"rules_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(RULES)
    monkeypatch.syspath_prepend(str(tmp_path))
    return f"{name}:pre_tool_call,{name}:post_tool_call"


async def test_a_hook_refuses_before_anybody_is_asked(rig: Rig, rules: str) -> None:
    rig.model.script(write("frozen"), Say("not done"))
    await rig.start(HOOKS=rules)
    rig.telegram.say(PERSON, "write it")
    await rig.shows("not done")
    assert rig.seen(role="tool") == ["Denied: files are frozen this week"]
    assert rig.cards() == [] and not (rig.workspace() / "frozen").exists()
    await rig.quiet()


async def test_a_hook_is_asked_once_over_a_crash(rig: Rig, rules: str) -> None:
    rig.model.script(write("a.txt", "hunter2"), Say("written"))
    await rig.start(HOOKS=rules)
    rig.telegram.say(PERSON, "write it")
    card = await rig.card()
    await rig.crash()
    await rig.start(HOOKS=rules)
    rig.press(card, "Approve")
    await rig.shows("written")
    assert (rig.workspace() / "a.txt").read_text() == "hunter2"
    assert "hunter2" not in rig.seen(role="tool")[-1], "what the model reads is rewritten"
    assert "+[secret]" in rig.seen(role="tool")[-1]
    (asked,) = rig.folder.glob("*.asked")
    assert asked.read_text() == "write_file\n"
    await rig.quiet()


async def test_a_hook_that_is_not_there_ends_with_2(world: World) -> None:
    code, said = await world.command("run", HOOKS="company.rules:pre_tool_call")
    assert code == 2
    assert "HOOKS=company.rules:pre_tool_call: cannot be imported" in said
    assert "Traceback" not in said


# ---- what it all costs -------------------------------------------------------------------


async def test_the_fixed_part_of_every_call_is_small(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "hello")
    await rig.shows("ack hello")
    body = rig.model.requests[0].body
    names = {tool["function"]["name"] for tool in body["tools"]}
    assert {"rollback", "check_command", "run_command", "write_file"} <= names
    fixed = body | {"messages": [m for m in body["messages"] if m["role"] == "system"]}
    assert len(json.dumps(fixed, ensure_ascii=False).encode()) <= 10 * 1024
    await rig.quiet()
