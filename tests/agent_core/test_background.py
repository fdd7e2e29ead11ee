"""Commands in the background: handles, their end, and that nothing is left of them."""

import asyncio
from pathlib import Path

import pytest

from agent_core.errors import ToolFailed
from agent_core.messages import wrap_output
from agent_core.sandboxes.commands.background import MAX_COMMANDS, Background
from agent_core.sandboxes.port import Sandbox
from agent_core.tools.contract import ToolContext
from agent_core.tools.shell import (
    CheckCommandArguments,
    RunCommandArguments,
    check_tool,
    shell_tool,
)
from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.processes import a_mark, gone, there
from tests.fakes.sandboxes import bwrap_sandbox, unsafe_sandbox
from tests.fakes.waiting import PATIENCE
from tests.sampling import one_of

both = pytest.mark.parametrize(
    "sandbox", one_of(pytest.param(bwrap_sandbox(), marks=NEEDS_BWRAP), unsafe_sandbox())
)


class Desk:
    """The two tools over one workspace."""

    def __init__(self, sandbox: Sandbox, workspace: Path, limit: int = 600) -> None:
        self.background = Background()
        self._run = shell_tool(sandbox, self.background, limit)
        self._check = check_tool(self.background, limit)
        self.workspace = workspace

    def context(self) -> ToolContext:
        return ToolContext(workspace=self.workspace, key="k", limit=60, output=lambda _: None)

    async def start(self, command: str, **more: int) -> str:
        arguments = RunCommandArguments(command=command, background=True, **more)
        said = str(await self._run.call(arguments, self.context()))
        return said.split(" as ")[1].split(",")[0]

    async def check(self, handle: str, action: str = "read", seconds: int = 30) -> str:
        arguments = CheckCommandArguments(handle=handle, action=action, seconds=seconds)  # type: ignore[arg-type]
        return wrap_output(await self._check.call(arguments, self.context())).text


@both
async def test_read_wait_and_the_exit_code(sandbox: Sandbox, tmp_path: Path) -> None:
    desk = Desk(sandbox, tmp_path)
    handle = await desk.start("echo on; while [ ! -e go ]; do sleep 0.02; done; echo off; exit 3")
    async with asyncio.timeout(PATIENCE):
        while "\non" not in (said := await desk.check(handle)):
            await asyncio.sleep(0.02)
    assert said.startswith(f"{handle} has been running for ") and "at most 600 s" in said
    assert "running" in await desk.check(handle, "wait", 1)
    (tmp_path / "go").touch()
    assert await desk.check(handle, "wait") == "on\noff\n[exit code 3]"
    assert await desk.check(handle) == "on\noff\n[exit code 3]", "it can be read again"
    assert await desk.check(handle, "stop") == "on\noff\n[exit code 3]"


@both
async def test_stop_takes_its_children_along(sandbox: Sandbox, tmp_path: Path) -> None:
    mark = a_mark()
    desk = Desk(sandbox, tmp_path)
    handle = await desk.start(f"trap '' TERM; sleep {mark} & sleep {mark}; echo never")
    await there(mark)
    assert (await desk.check(handle, "stop")).endswith("\n[stopped]")
    await gone(mark)


@both
async def test_its_time_ends(sandbox: Sandbox, tmp_path: Path) -> None:
    mark = a_mark()
    desk = Desk(sandbox, tmp_path, limit=1)
    handle = await desk.start(f"echo on; sleep {mark}")
    assert await desk.check(handle, "wait") == "on\n[stopped after 1 s]"
    handle = await desk.start(f"sleep {mark}", timeout=99)
    assert "[stopped after 1 s]" in await desk.check(handle, "wait", 9)
    await gone(mark)


async def test_four_at_once_in_each_workspace(tmp_path: Path) -> None:
    mark = a_mark()
    desk = Desk(unsafe_sandbox(), tmp_path)
    handles = [await desk.start(f"sleep {mark}") for _ in range(MAX_COMMANDS)]
    with pytest.raises(ToolFailed, match=f"4 commands run.*{handles[0]}"):
        await desk.start("true")
    other = Desk(unsafe_sandbox(), tmp_path / "other")
    other.background = desk.background
    other._run = shell_tool(unsafe_sandbox(), desk.background)
    other._check = check_tool(desk.background)
    other.workspace.mkdir()
    elsewhere = await other.start(f"sleep {mark}")
    with pytest.raises(ToolFailed, match="There is no command"):
        await other.check(handles[0])
    await desk.check(handles[0], "stop")
    await desk.start("true")
    assert desk.background.halt(tmp_path) >= MAX_COMMANDS - 1
    assert "has been running" in await other.check(elsewhere)
    assert desk.background.halt() == 1
    await desk.background.close()
    await gone(mark)


async def test_an_unknown_handle_says_what_may_have_happened(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="restarted since: then the process is gone"):
        await Desk(unsafe_sandbox(), tmp_path).check("command-AAAAA")


async def test_little_is_kept_of_much(tmp_path: Path) -> None:
    desk = Desk(unsafe_sandbox(), tmp_path)
    first = await desk.start("seq 200000; sleep 60")
    async with asyncio.timeout(PATIENCE):
        while "\n200000" not in (said := await desk.check(first)):
            await asyncio.sleep(0.02)
    assert len(said) < 7_000 and "characters before this" in said
    first_line, second = said.partition("before this]\n")[2].split("\n")[:2]
    assert int(first_line) + 1 == int(second), "half a line could be half a secret"
    for _ in range(12):
        handle = await desk.start("seq 200000")
        assert len(await desk.check(handle, "wait")) < 110_000
    assert len(desk.background._commands[tmp_path]) <= 8
    assert "has been running" in await desk.check(first), "what runs is never forgotten"
    await desk.background.close()
    assert "[stopped]" in await desk.check(first)


async def test_a_command_that_cannot_start_is_no_command(tmp_path: Path) -> None:
    desk = Desk(unsafe_sandbox(), tmp_path / "none")
    with pytest.raises(OSError):
        await desk.start("true")
    assert desk.background._commands == {}


async def test_a_command_sees_nothing_of_its_supervisor(tmp_path: Path) -> None:
    """No input, no open file of another's, no child that it did not start."""
    code = (
        "import os, sys\nprint(repr(sys.stdin.read()), os.path.exists('/proc/self/fd/4'))\n"
        "try: os.wait()\nexcept ChildProcessError: print('no child')"
    )
    (tmp_path / "x.py").write_text(code)
    quiet = lambda _: None  # noqa: E731
    done = await unsafe_sandbox().run("python3 x.py", tmp_path, 10, quiet)
    assert done.output == "'' False\nno child\n"
    done = await unsafe_sandbox().run("kill -SEGV $$", tmp_path, 10, quiet)
    assert (done.exit_code, done.output) == (139, "[A program crashed: SIGSEGV.]\n")
