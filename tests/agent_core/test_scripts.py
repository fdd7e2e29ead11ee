"""execute_script: Python that calls tools; what it may, what it is told, and what is left of it."""

import asyncio
import json
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_core.errors import Parked
from agent_core.journal import (
    Answered,
    Journal,
    QuestionAsked,
    ToolFinished,
    ToolStarted,
)
from agent_core.messages import Message, ToolCall, ToolResult
from agent_core.orchestration.acting import CALLER_GONE, act
from agent_core.orchestration.brief import Brief, Hands, TurnResult
from agent_core.orchestration.drive import drive
from agent_core.policy import Verdict
from agent_core.questions import Answer, Choice
from agent_core.sandboxes.commands.background import Background
from agent_core.sandboxes.pool import SandboxPool
from agent_core.scope import SKIPPED, UNKNOWN, Scope, Turn
from agent_core.tools.code.script import library, running
from agent_core.tools.code.script.execute_script import NAME, script_tools
from agent_core.tools.code.script.running import MAX_CALLS, RunningScripts
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.files import file_tools
from agent_core.tools.hooks import HookedCall, ToolHooks
from agent_core.tools.shell import command_tools
from agent_core.tools.toolbox import Prepared, Toolbox
from agent_core.tools.web.tools import WebSearchArguments
from tests.agent_core.scope_rig import Disk
from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.sandboxes import bwrap_sandbox, unsafe_sandbox
from tests.fakes.waiting import PATIENCE
from tests.sampling import one_of

ISOLATED = pytest.param(bwrap_sandbox(), marks=NEEDS_BWRAP)
both = pytest.mark.parametrize(
    "sandbox", one_of(ISOLATED, unsafe_sandbox()), ids=["bwrap", "unsafe"]
)
ALL = "from turnkeeper import *\n"


class ScriptRig:
    """One life: a turn that calls execute_script once. `ask`: tools that a person is asked about;
    `offered`: tools that the turn may use besides."""

    def __init__(
        self,
        folder: Path,
        sandbox: SandboxPool,
        ask: Sequence[str] = (),
        offered: Sequence[str] = ("read_file", "write_file", "list_files", "run_command")
        + ("web_search",),
    ) -> None:
        self.scripts = RunningScripts()
        self.searched: list[str] = []
        self.vetoed: list[HookedCall] = []
        self.live_text = ""
        search = Tool(
            name="web_search", description="", arguments=WebSearchArguments, repetition="pure",
            access="network", call=self._search,
        )  # fmt: skip
        commands = command_tools(sandbox, Background(), 30)
        self.script = script_tools(sandbox, self.scripts, 30)
        tools = (*file_tools(), *commands, search, *self.script)
        self.brief = Brief(
            text="", system="", model="m", tools=(NAME, *offered), workspace=str(folder),
        )  # fmt: skip
        self.turn: Turn | None = None
        self._ask = ask
        self.snapshots = 0
        self.hands = Hands(
            complete=self._never, toolbox=Toolbox(tools), judge=self._judge, live=self._live,
            hooks=ToolHooks(pre=(self._veto,)), snapshot=self._snapshot,
        )  # fmt: skip

    async def _search(self, wanted: WebSearchArguments, context: ToolContext) -> str:
        self.searched.append(wanted.query)
        return f"found {wanted.query}"

    async def _never(self, *_: object) -> None:  # type: ignore[override]
        raise AssertionError("no model is asked")

    def _judge(self, item: Prepared) -> Verdict:
        asks = item.tool.name in self._ask
        return Verdict(ruling="ask" if asks else "allow", rule="t", reason="", digest=item.digest)

    def _veto(self, call: HookedCall) -> str | None:
        self.vetoed.append(call)
        return "the hook says no" if "forbidden" in str(call.arguments.get("path")) else None

    async def _snapshot(self) -> None:
        self.snapshots += 1

    def _live(self, event: object) -> None:
        self.live_text += getattr(event, "text", "")

    def live(self, event: object) -> None: ...

    def take_steers(self) -> tuple[tuple[int, str], ...]:
        return ()

    async def run(self, disk: Disk, code: str, **more: object) -> ToolResult:
        """The call's result; Parked where a person is waited for."""
        arguments = json.dumps({"code": ALL + textwrap.dedent(code), **more})
        call = ToolCall(id="c1", name=NAME, arguments=arguments)

        async def work(scope: Scope, past: tuple[Message, ...]) -> TurnResult:
            (self.result,) = await act(scope.child("script"), self.brief, self.hands, (call,))
            return TurnResult(text="", messages=())

        self.turn = Turn("t", Journal(list(disk.records), disk.write), self)
        await drive(self.turn, work)
        await self.turn.journal.barrier()
        return self.result

    async def tell(self, disk: Disk, code: str, **more: object) -> dict:
        """The call's result, taken apart."""
        result = await self.run(disk, code, **more)
        assert not result.error, result.content
        return json.loads(result.content)


def started(disk: Disk) -> list[str]:
    return [one.call.name for one in disk.records if isinstance(one, ToolStarted)]


def finished(disk: Disk) -> list[tuple[str, str]]:
    return [(one.name, one.outcome) for one in disk.records if isinstance(one, ToolFinished)]


def answer(disk: Disk, choice: Choice = "once") -> None:
    """A person answers the question that is open."""
    answered = {one.asked for one in disk.records if isinstance(one, Answered)}
    (asked,) = (
        one for one in disk.records if isinstance(one, QuestionAsked) and one.key not in answered
    )
    given = Answer(choice=choice, by="ann", name="Ann")
    disk.records.append(Answered(key=f"{asked.key}#answer", asked=asked.key, answer=given))


# ---- what it does ----------------------------------------------------------------------------


@both
async def test_its_calls_are_calls_of_their_own_in_their_order(
    sandbox: SandboxPool, tmp_path: Path
) -> None:
    rig, disk = ScriptRig(tmp_path, sandbox), Disk()
    told = await rig.tell(
        disk,
        """
        import sys
        from pathlib import Path
        print(web_search("tea", count=3))
        print(write_file("a.txt", "one"))
        done = run_command("cat a.txt; exit 3")
        print(done.exit_code, done)
        print(read_file(Path("a.txt")), "a.txt" in list_files())
        Path("made").mkdir()
        Path("made/by.txt").write_text("the script")
        print(__file__, __name__, "to whom", file=sys.stderr)
        sys.exit(4)
        """,
    )
    assert list(told) == ["success", "exit_code", "created_files", "stdout", "stderr"]
    assert (told["success"], told["exit_code"]) == (False, 4)
    assert told["created_files"] == ["a.txt", "made/by.txt"]
    out = told["stdout"]
    assert out.startswith("found tea\nCreated a.txt") and out.endswith("one True\n")
    assert "3 one\n[exit code 3]\n" in out
    assert told["stderr"] == "/tmp/turnkeeper/current_script.py __main__ to whom\n"
    assert started(disk) == [NAME, "write_file", "run_command"], "reading needs no start"
    names = ["web_search", "write_file", "run_command", "read_file", "list_files"]
    assert finished(disk) == [*((name, "ok") for name in names), (NAME, "ok")]
    assert [call.name for call in rig.vetoed] == [NAME, *names], "each goes by the hooks"
    assert rig.snapshots == 3, "before what may change files"
    assert "to whom" in rig.live_text and "found tea" in rig.live_text
    (last,) = (r for r in disk.records if isinstance(r, ToolFinished) and r.name == NAME)
    assert last.shown is not None and str(last.shown).endswith("[exit code 4]")
    assert last.changed == ("a.txt", "made/by.txt")


@both
async def test_what_fails_is_an_exception(sandbox: SandboxPool, tmp_path: Path) -> None:
    rig, disk = ScriptRig(tmp_path, sandbox, offered=("read_file", "write_file")), Disk()
    told = await rig.tell(
        disk,
        """
        for act in (
            lambda: read_file("nowhere.txt"),
            lambda: write_file("forbidden.txt", "x"),
            lambda: web_search("tea"),
            lambda: read_file("a.txt", colour="red"),
            lambda: read_file("a.txt", limit="many"),
        ):
            try:
                act()
            except ToolError as error:
                print(str(error).splitlines()[0][:60])
        """,
    )
    lines = told["stdout"].splitlines()
    assert "nowhere.txt" in lines[0] and "the hook says no" in lines[1]
    assert lines[2].startswith("There is no tool 'web_search'. Tools:"), "the turn may not use it"
    assert lines[4].startswith("The arguments of read_file do not fit"), lines
    assert rig.searched == [] and not (tmp_path / "forbidden.txt").exists()


ODD = ("chr(0xD800)", "float('nan')", "10 ** 400", "[" * 90 + "]" * 90, "'x' * 3_000_000", "{}")


@both
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd[:12])
async def test_a_call_that_nobody_understands_is_answered(
    sandbox: SandboxPool, odd: str, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("kept")
    code = f"""
        try:
            print(read_file("a.txt", offset={odd}))
        except ToolError as error:
            print("refused")
        print(read_file("a.txt"))
        """
    told = await ScriptRig(tmp_path, sandbox).tell(Disk(), code)
    assert told["stdout"].splitlines() == ["refused", "kept"], told


@both
async def test_an_error_names_the_line_of_the_script(sandbox: SandboxPool, tmp_path: Path) -> None:
    rig = ScriptRig(tmp_path, sandbox)
    told = await rig.tell(Disk(), "def fail():\n    return 1 / 0\nfail()")
    assert told["exit_code"] == 1 and told["success"] is False
    assert told["stderr"].splitlines()[1:3] == [
        '  File "/tmp/turnkeeper/current_script.py", line 4, in <module>',
        "    fail()",
    ]
    assert told["stderr"].endswith("ZeroDivisionError: division by zero\n")
    assert "launch" not in told["stderr"] and "<string>" not in told["stderr"]
    told = await rig.tell(Disk(), "if")
    assert "SyntaxError" in told["stderr"] and "current_script.py" in told["stderr"]


@both
async def test_modules_of_the_workspace_are_the_scripts_alone(
    sandbox: SandboxPool, tmp_path: Path
) -> None:
    (tmp_path / "helper.py").write_text("x = 'from here'")
    (tmp_path / "json.py").write_text("raise SystemExit('swapped')")
    (tmp_path / "turnkeeper.py").write_text("raise SystemExit('swapped')")
    rig = ScriptRig(tmp_path, sandbox)
    code = "import helper, os; print(helper.x, os.path.exists('/tmp/turnkeeper/current_script.py'))"
    assert (await rig.tell(Disk(), code))["stdout"] == "from here True\n"
    assert {one.name for one in tmp_path.iterdir()} - {".turnkeeper", "__pycache__"} == {
        "helper.py", "json.py", "turnkeeper.py",
    }  # fmt: skip


# ---- odd scripts -----------------------------------------------------------------------------


@both
async def test_threads_take_turns(sandbox: SandboxPool, tmp_path: Path) -> None:
    rig, disk = ScriptRig(tmp_path, sandbox), Disk()
    told = await rig.tell(
        disk,
        """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda n: web_search(f"q{n}"), range(40)))
        print(found == [f"found q{n}" for n in range(40)])
        """,
    )
    assert told["stdout"] == "True\n"
    assert sorted(rig.searched) == sorted(f"q{n}" for n in range(40))


@both
async def test_large_calls_and_results(sandbox: SandboxPool, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("x" * 60 + "\n" + "line\n" * 100_000)
    rig = ScriptRig(tmp_path, sandbox)
    told = await rig.tell(
        Disk(),
        """
        print(write_file("big.txt", "y" * 1_500_000)[:14])
        try:
            write_file("huge.txt", "z" * 2_500_000)
        except ToolError as error:
            print(error)
        page = read_file("long.txt")
        print(len(page) < 12_000, page.splitlines()[0] == "x" * 60)
        """,
    )
    lines = told["stdout"].splitlines()
    assert lines[1].startswith("The call is too long: 2,500,") and lines[2] == "True True", lines
    assert (tmp_path / "big.txt").stat().st_size == 1_500_000
    assert not (tmp_path / "huge.txt").exists()
    result = await rig.run(Disk(), "print('w' * 3_000_000)")
    assert result.content.startswith('{"success": true') and len(result.content) < 11_000
    assert ".turnkeeper/outputs/" in result.content, "the whole is kept"


def test_both_ends_agree_on_the_longest_call() -> None:
    assert running.MAX_REQUEST is library.MAX_REQUEST
    assert not hasattr(library, "_gateway"), "the gateway itself opens no channel"


@both
async def test_what_is_no_call_is_refused_and_ends_nothing(
    sandbox: SandboxPool, tmp_path: Path
) -> None:
    rig, disk = ScriptRig(tmp_path, sandbox), Disk()
    told = await rig.tell(
        disk,
        r"""
        import os, json
        def raw(line):
            os.write(3, line)
            said = b""
            while not said.endswith(b"\n"):
                said += os.read(3, 65536)
            print(json.loads(said))
        raw(b"{\n")
        raw(b"\xff\xfe\n")
        raw(b"[" * 100_000 + b"\n")
        raw(json.dumps({"id": 7, "tool": "execute_script", "arguments": {"code": "1"}}).encode() + b"\n")
        raw(json.dumps({"id": "x", "tool": "ask_user", "arguments": {}}).encode() + b"\n")
        raw(json.dumps({"id": 1, "tool": "read_file", "arguments": 5}).encode() + b"\n")
        os.write(3, b"x" * 5_000_000); raw(b"\n")
        os.write(3, b"half a line")
        print(web_search("tea"))
        """,
    )
    lines = told["stdout"].splitlines()
    assert [line.startswith("{'id': None, 'ok': False") for line in lines] == [
        True, True, True, False, False, False, True, False,
    ], lines  # fmt: skip
    assert lines[3].startswith("{'id': 7, 'ok': False, 'text': \"A script cannot call 'execute_sc")
    assert "A script cannot call 'ask_user'" in lines[4] and "at most" in lines[6]
    assert lines[7] == "found tea"
    assert finished(disk) == [("web_search", "ok"), (NAME, "ok")]


@both
async def test_a_closed_channel_and_what_it_starts(sandbox: SandboxPool, tmp_path: Path) -> None:
    rig = ScriptRig(tmp_path, sandbox)
    told = await rig.tell(
        Disk(),
        """
        import os, subprocess, sys
        pid = os.fork()
        if not pid:
            try:
                web_search("child")
            except ToolError as error:
                print("child:", error, flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        code = "import os; os.fstat(3)"
        print(subprocess.run([sys.executable, "-c", code], close_fds=False,
                             stderr=subprocess.DEVNULL).returncode)
        os.close(3)
        print(web_search("tea"), flush=True)
        os.closerange(3, 50)
        try:
            web_search("more")
        except ToolError as error:
            print(error)
        """,
    )
    lines = told["stdout"].splitlines()
    assert lines[0] == "child: Only the script can call tools, not a process that it starts."
    assert lines[1:3] == ["1", "found tea"], "what it starts does not get the channel"
    assert lines[3].startswith("The gateway cannot be reached: ")
    assert rig.searched == ["tea"] and told["success"]


@both
async def test_an_exit_while_a_call_runs(sandbox: SandboxPool, tmp_path: Path) -> None:
    rig, disk = ScriptRig(tmp_path, sandbox), Disk()
    told = await rig.tell(
        disk,
        """
        import os, threading, time
        threading.Thread(target=run_command, args=("touch began; sleep 1; touch ended",)).start()
        while not os.path.exists("began"):
            time.sleep(0.01)
        os._exit(5)
        """,
    )
    assert told["exit_code"] == 5 and (tmp_path / "ended").exists(), "the call went to its end"
    assert finished(disk) == [("run_command", "ok"), (NAME, "ok")]


@both
async def test_an_interrupted_call_does_not_answer_the_next(
    sandbox: SandboxPool, tmp_path: Path
) -> None:
    told = await ScriptRig(tmp_path, sandbox).tell(
        Disk(),
        """
        import signal
        def stop(number, frame):
            raise InterruptedError("alarm")
        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            run_command("sleep 1; echo late")
        except Exception as error:
            print(error)
        print(web_search("tea"))
        """,
    )
    assert told["stdout"].splitlines()[-1] == "found tea" and "late" not in told["stdout"]


@both
async def test_it_may_make_so_many_calls(sandbox: SandboxPool, tmp_path: Path) -> None:
    rig = ScriptRig(tmp_path, sandbox)
    code = f"for n in range({MAX_CALLS + 5}):\n    web_search(str(n))"
    told = await rig.tell(Disk(), code)
    assert f"ToolError: A script may make {MAX_CALLS} calls" in told["stderr"]
    assert len(rig.searched) == MAX_CALLS


@both
async def test_its_time_is_limited_and_not_by_its_calls(
    sandbox: SandboxPool, tmp_path: Path
) -> None:
    rig, disk = ScriptRig(tmp_path, sandbox), Disk()
    told = await rig.tell(disk, "print(1, flush=True)\nwhile True: pass", timeout=1)
    assert (told["success"], told["exit_code"], told["stopped"]) == (False, None, "after 1 s")
    assert told["stdout"] == "1\n"
    told = await rig.tell(Disk(), "run_command('sleep 1.5; touch done')\nprint(1)", timeout=1)
    assert told["stopped"] == "after 1 s" and (tmp_path / "done").exists(), "a call goes to its end"


# ---- a person is asked -----------------------------------------------------------------------

ASKING = """
open("begun", "a").write("x")
print(write_file("a.txt", "one"))
print(run_command("touch deployed"))
print(write_file("b.txt", "two"))
"""


LIMIT = 4
"""Seconds of a script; a busy machine takes one to start it."""


@both
async def test_it_waits_for_a_person_while_its_turn_is_parked(
    sandbox: SandboxPool, tmp_path: Path
) -> None:
    rig, disk = ScriptRig(tmp_path, sandbox, ask=("run_command", "web_search")), Disk()
    code = f"{ASKING}print(web_search('tea'))"
    with pytest.raises(Parked):
        await rig.run(disk, code, timeout=LIMIT)
    await asyncio.sleep(1.1 * LIMIT)  # its time does not run out
    answer(disk)
    with pytest.raises(Parked):
        await rig.run(disk, code, timeout=LIMIT)
    assert (tmp_path / "deployed").exists() and (tmp_path / "b.txt").exists()
    answer(disk)
    told = await rig.tell(disk, code, timeout=LIMIT)
    assert told["success"] and told["stdout"].splitlines()[-1] == "found tea"
    assert told["created_files"] == ["a.txt", "b.txt", "begun", "deployed"]
    assert (tmp_path / "begun").read_text() == "x", "it was begun once"
    assert started(disk) == [NAME, "write_file", "run_command", "write_file"]
    assert [outcome for _, outcome in finished(disk)] == ["ok"] * 5
    assert await rig.tell(disk, code, timeout=LIMIT) == told, "a replay starts nothing"


@both
async def test_a_person_says_no(sandbox: SandboxPool, tmp_path: Path) -> None:
    rig, disk = ScriptRig(tmp_path, sandbox, ask=("run_command",)), Disk()
    with pytest.raises(Parked):
        await rig.run(disk, ASKING)
    answer(disk, "deny")
    told = await rig.tell(disk, ASKING)
    assert "turnkeeper.ToolError: Denied by Ann" in told["stderr"] and told["exit_code"] == 1
    assert finished(disk) == [("write_file", "ok"), ("run_command", "denied"), (NAME, "ok")]


@both
async def test_an_approved_script_that_changes_what_it_names_goes_on(
    sandbox: SandboxPool, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("before")
    rig, disk = ScriptRig(tmp_path, sandbox, ask=(NAME, "run_command")), Disk()
    for _ in range(2):
        with pytest.raises(Parked):
            await rig.run(disk, ASKING)
        answer(disk)
    assert (await rig.tell(disk, ASKING))["success"], "it is still what was approved"


@both
async def test_after_a_restart_it_is_told_and_not_run_again(
    sandbox: SandboxPool, tmp_path: Path
) -> None:
    rig, disk = ScriptRig(tmp_path, sandbox, ask=("run_command",)), Disk()
    with pytest.raises(Parked):
        await rig.run(disk, ASKING)
    later = ScriptRig(tmp_path, sandbox, ask=("run_command",))
    result = await later.run(disk, ASKING)
    assert result.error and result.content.startswith(UNKNOWN)
    lines = result.content.splitlines()
    assert lines[2].startswith('1. write_file {"path": "a.txt", "content": "one"}')
    assert lines[3].startswith("   ok: Created a.txt") and any("Not run" in line for line in lines)
    (given,) = (one for one in disk.records if isinstance(one, Answered))
    assert given.answer.choice == "cancelled", "the question is withdrawn"
    assert started(disk) == [NAME, "write_file"]
    assert (tmp_path / "begun").read_text() == "x" and not (tmp_path / "deployed").exists()
    assert await later.run(disk, ASKING) == result


@both
async def test_a_yes_after_the_restart_runs_nothing(sandbox: SandboxPool, tmp_path: Path) -> None:
    rig, disk = ScriptRig(tmp_path, sandbox, ask=("run_command",)), Disk()
    with pytest.raises(Parked):
        await rig.run(disk, ASKING)
    answer(disk)
    result = await ScriptRig(tmp_path, sandbox).run(disk, ASKING)
    assert "Not run, though a person allowed it" in result.content
    assert not (tmp_path / "deployed").exists() and started(disk) == [NAME, "write_file"]


@both
async def test_a_yes_after_the_script_has_ended_runs_nothing(
    sandbox: SandboxPool, tmp_path: Path
) -> None:
    rig, disk = ScriptRig(tmp_path, sandbox, ask=("run_command",)), Disk()
    with pytest.raises(Parked):
        await rig.run(disk, ASKING)
    token = next(one.token for one in disk.records if isinstance(one, ToolStarted))
    held = rig.scripts.take(token)
    assert held is not None
    rig.scripts.hold(token, held)
    sandbox.halt(tmp_path)
    assert await held.command.wait(5) is not None
    answer(disk)
    told = await rig.tell(disk, ASKING)
    assert told["exit_code"] == 137 and told["stdout"].startswith("Created a.txt")
    assert finished(disk)[1] == ("run_command", "failed")
    assert CALLER_GONE in [r.content for r in disk.records if isinstance(r, ToolFinished)]
    assert not (tmp_path / "deployed").exists()


@both
async def test_what_waits_ends_with_its_turn(sandbox: SandboxPool, tmp_path: Path) -> None:
    rig, disk = ScriptRig(tmp_path, sandbox, ask=("run_command",)), Disk()
    with pytest.raises(Parked):
        await rig.run(disk, ASKING)
    token = next(one.token for one in disk.records if isinstance(one, ToolStarted))
    held = rig.scripts.take(token)
    assert held is not None and token.startswith("t/")
    rig.scripts.hold("t/one", held)
    rig.scripts.end_turn("other")
    assert rig.scripts.holds("t/one")
    rig.scripts.end_turn("t")
    assert not rig.scripts.holds("t/one")
    assert await held.command.wait(5) is not None, "its process is gone"


@both
async def test_a_stop_ends_it(sandbox: SandboxPool, tmp_path: Path) -> None:
    rig, disk = ScriptRig(tmp_path, sandbox), Disk()
    code = "web_search('tea')\nimport time\nopen('there', 'w')\ntime.sleep(60)"
    async with asyncio.TaskGroup() as group:
        running_script = group.create_task(rig.run(disk, code))
        async with asyncio.timeout(PATIENCE):
            while not (tmp_path / "there").exists():
                await asyncio.sleep(0.01)
        running_script.cancel()
    # of this workspace: without a sandbox those of other tests are seen too
    own = "for p in $(pgrep -f '[c]urrent_script'); do readlink /proc/$p/cwd; done | grep -Fx $PWD"
    left = await sandbox.run(f"{own} || echo none", tmp_path, 5, lambda _: None)
    assert running_script.cancelled() and left.output.splitlines()[-1] == "none"


@both
async def test_a_step_that_is_skipped_ends_its_script(sandbox: SandboxPool, tmp_path: Path) -> None:
    rig, disk = ScriptRig(tmp_path, sandbox), Disk()
    async with asyncio.TaskGroup() as group:
        going = group.create_task(rig.run(disk, "run_command('touch there; sleep 60')"))
        async with asyncio.timeout(PATIENCE):
            while not (tmp_path / "there").exists():
                await asyncio.sleep(0.01)
        assert rig.turn is not None
        rig.turn.cut("script")
    assert going.result().content == SKIPPED
    assert sorted(finished(disk)) == [(NAME, "cancelled"), ("run_command", "unknown")]


def test_where_nobody_can_talk_it_is_not_offered(tmp_path: Path) -> None:
    class Mute(SandboxPool):
        channels = None  # type: ignore[assignment]

    sandbox = unsafe_sandbox()
    assert script_tools(sandbox, RunningScripts(), 30)
    assert script_tools(Mute(sandbox._tier), RunningScripts(), 30) == ()


async def test_the_oldest_of_too_many_that_wait_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "MAX_HELD", 1)
    sandbox = unsafe_sandbox()
    rig = ScriptRig(tmp_path, sandbox, ask=("run_command",))
    disks = [Disk(), Disk()]
    with pytest.raises(Parked):
        await rig.run(disks[0], ASKING)
    (token,) = rig.scripts.tokens
    first = rig.scripts.take(token)
    assert first is not None
    rig.scripts.hold("t/first", first)
    with pytest.raises(Parked):
        await rig.run(disks[1], ASKING)
    assert rig.scripts.tokens == (token,) and await first.command.wait(5) is not None
