"""Scripts that call tools, through the real gateway and a sandbox that contains them."""

import asyncio
import json

import pytest

from agent_core.sandboxes.pool import SandboxPool
from tests.fakes.model_server import Call, Say
from tests.fakes.needs import NEEDS_BWRAP
from tests.stories.rig import ADMIN, Rig

WRITES = """
from turnkeeper import *
for name in ("a", "b"):
    write_file(name + ".txt", name)
done = run_command("cat a.txt b.txt > all.txt; cat all.txt")
print("joined", done.splitlines()[0], done.exit_code)
open("own.txt", "w").write("own")
"""
REACHES = """
from turnkeeper import *
try:
    print(browse("https://far.example/page"))
except ToolError as error:
    print("shut:", error)
import urllib.request
try:
    urllib.request.urlopen("http://far.example/", timeout=5)
except OSError as error:
    print("no way out:", type(error).__name__)
"""


def script(code: str) -> Call:
    return Call("execute_script", json.dumps({"code": code}))


@NEEDS_BWRAP
async def test_what_calls_tools_waits_until_the_sandbox_was_tried_out_and_nothing_else(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_try, check = asyncio.Event(), SandboxPool.check

    async def check_late(pool: SandboxPool) -> None:
        await may_try.wait()
        await check(pool)

    monkeypatch.setattr(SandboxPool, "check", check_late)
    rig.model.script(Say("Good day."), script("print(1)"), Say("It ran."))
    await rig.start(SANDBOX_PROVIDER="bwrap")
    rig.telegram.say(ADMIN, "hello")
    await rig.shows("Good day.", ADMIN)
    rig.telegram.say(ADMIN, "run it")
    await rig.until(lambda: len(rig.model.requests) == 2 and not rig.model.inflight)
    assert not rig.buttons(ADMIN)
    may_try.set()
    await rig.shows("It ran.", ADMIN)
    assert not rig.buttons(ADMIN), "contained, so that nobody was asked"


@NEEDS_BWRAP
async def test_a_script_runs_unasked_where_it_is_contained_and_is_undone(rig: Rig) -> None:
    rig.model.script(script(WRITES), Say("All is joined."), script(REACHES), Say("It is shut."))
    await rig.start(SANDBOX_PROVIDER="bwrap")
    rig.telegram.say(ADMIN, "join them")
    await rig.shows("All is joined.", ADMIN)
    told = json.loads(rig.seen(role="tool")[-1])
    assert told["stdout"] == "joined ab 0\n" and told["success"], told
    assert told["created_files"] == ["a.txt", "all.txt", "b.txt", "own.txt"]
    (workspace,) = rig.home.glob("workspaces/*")
    assert (workspace / "all.txt").read_text() == "ab"
    assert not any("May this run?" in text for text in rig.said(ADMIN)), "nobody is asked"
    await rig.quiet()
    (lines,) = (text for text in rig.said(ADMIN) if "Run code" in text and "☑ Write a file" in text)
    assert lines.count("☑ Write a file:") == 2 and lines.count("☑ Run a command: cat") == 1, lines
    rig.telegram.say(ADMIN, "/undo")
    await rig.shows("Restored files: a.txt, all.txt, b.txt, own.txt", ADMIN)
    assert not (workspace / "all.txt").exists()
    await rig.quiet()

    rig.telegram.say(ADMIN, "look far away")
    rig.press(await rig.card(ADMIN), "Deny", ADMIN)
    await rig.shows("It is shut.", ADMIN)
    told = json.loads(rig.seen(role="tool")[-1])
    assert told["stdout"].startswith("shut: Denied by ") and "no way out: " in told["stdout"]
    await rig.quiet()
