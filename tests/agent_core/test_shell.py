"""run_command: sandboxes, limits, and what an approval is bound to."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from agent_core.errors import ToolFailed
from agent_core.messages import CommandResult, ToolOutput, wrap_output
from agent_core.sandboxes.bwrap import BwrapTier
from agent_core.sandboxes.commands.background import Background
from agent_core.sandboxes.folders import prepare
from agent_core.sandboxes.port import ProcessResult, Sandbox
from agent_core.tools.contract import ToolContext
from agent_core.tools.shell import RunCommandArguments, bind, shell_tool
from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.sandboxes import bwrap_sandbox, unsafe_sandbox
from tests.fakes.waiting import PATIENCE

both = pytest.mark.parametrize(
    "sandbox", [pytest.param(bwrap_sandbox(), marks=NEEDS_BWRAP), unsafe_sandbox()]
)


async def run(sandbox: Sandbox, command: str, cwd: Path, limit: float = 10.0) -> ProcessResult:
    return await sandbox.run(command, cwd, limit, lambda _: None)


@NEEDS_BWRAP
async def test_nothing_else_is_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "SECRET")
    (tmp_path / "a").write_text("x")
    command = (
        "cat a; echo y > b; env; cat /proc/1/environ; ls /root /srv /etc/shadow; "
        "cat < /dev/tcp/127.0.0.1/80; touch .turnkeeper/z; mv .turnkeeper q; pwd; id -u"
    )
    done = await run(bwrap_sandbox(), command, tmp_path)
    assert "SECRET" not in done.output and "/workspace" in done.output
    assert done.output.count("cannot access") == 3 and "refused" in done.output
    assert (tmp_path / "b").read_text() == "y\n"
    assert (tmp_path / ".turnkeeper").is_dir() and not (tmp_path / ".turnkeeper/z").exists()
    assert "\n0\n" not in done.output


@NEEDS_BWRAP
async def test_a_fork_bomb_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BwrapTier, "max_processes", 60)  # with 512 others could start nothing
    command = "for n in $(seq 100); do sleep 5 & done 2>&1 | grep -c -m1 esource"
    done = await run(bwrap_sandbox(), command, tmp_path, 8.0)
    # The kernel counts other sandboxes' too: the shell itself may be refused, and tries again.
    assert "1" in done.output.splitlines()


async def test_handing_over_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("")
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/link").symlink_to(tmp_path / "outside")
    os.link(tmp_path / "outside", tmp_path / "ws/hard")
    before = (tmp_path / "outside").stat().st_uid
    prepare(tmp_path / "ws", os.geteuid() == 0)
    assert (tmp_path / "outside").stat().st_uid == before


@both
async def test_codes_limits_and_children(sandbox: Sandbox, tmp_path: Path) -> None:
    assert (await run(sandbox, "echo a; echo b >&2; exit 3", tmp_path)).exit_code == 3
    began = time.monotonic()
    done = await run(sandbox, "trap '' TERM; echo on; sleep 60 & sleep 60", tmp_path, 1.0)
    assert done.timed_out and done.output == "on\n" and done.exit_code == 137
    assert (await run(sandbox, "sleep 60 & echo done", tmp_path)).output == "done\n"
    assert time.monotonic() - began < 30


@both
async def test_cancellation_kills(sandbox: Sandbox, tmp_path: Path) -> None:
    command = "(while :; do date +%s%N > beat; sleep 0.02; done) & wait"
    task = asyncio.create_task(run(sandbox, command, tmp_path))
    async with asyncio.timeout(PATIENCE):
        while not (tmp_path / "beat").exists():
            await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.1)
    last = (tmp_path / "beat").read_text()
    await asyncio.sleep(0.2)
    assert (tmp_path / "beat").read_text() == last


@both
async def test_endless_output_is_bounded(sandbox: Sandbox, tmp_path: Path) -> None:
    live: list[str] = []
    done = await sandbox.run("yes", tmp_path, 10.0, live.append)
    assert len(done.output) < 1_100_000 and sum(map(len, live)) < 210_000
    assert "left out" in done.output.splitlines()[-1]


async def test_the_tool(tmp_path: Path) -> None:
    tool = shell_tool(unsafe_sandbox(), Background())
    assert not tool.isolated and "Nothing isolates" in tool.description
    context = ToolContext(workspace=tmp_path, key="k", limit=5, output=lambda _: None)
    assert await tool.call(RunCommandArguments(command="echo hi; false"), context) == ToolOutput(
        text="hi\n[exit code 1]", command=CommandResult(exit_code=1, written=2)
    )
    slow = wrap_output(await tool.call(RunCommandArguments(command="sleep 9", timeout=1), context))
    assert slow.command == CommandResult(stopped=1.0) and "stopped after 1 s" in slow.text
    quiet = wrap_output(await tool.call(RunCommandArguments(command="true"), context)).command
    assert quiet is not None and quiet.silent and not quiet.failed


@pytest.mark.parametrize(
    "command",
    [
        "bash x.sh",
        "sh -c 'bash x.sh'",
        "cd d && . ./y.sh",
        "bash *.sh",
        "source .env",
        "a=x.sh;sh $a",
    ],
)
def test_a_script_is_bound_by_its_content(tmp_path: Path, command: str) -> None:
    (tmp_path / "d").mkdir()
    for name in ("x.sh", "d/y.sh", ".env"):
        (tmp_path / name).write_text("echo")
    before = bind(RunCommandArguments(command=command), tmp_path)
    assert bind(RunCommandArguments(command=command), tmp_path) == before
    for name in ("x.sh", "d/y.sh", ".env"):
        (tmp_path / name).write_text("rm")
    assert bind(RunCommandArguments(command=command), tmp_path) != before


@both
async def test_a_command_runs_in_a_folder_of_the_workspace(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    (tmp_path / "sub dir").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "out").symlink_to("/usr")
    tool = shell_tool(sandbox, Background())
    context = ToolContext(workspace=tmp_path, key="k", limit=5, output=lambda _: None)
    wanted = RunCommandArguments(command='basename "$PWD"', cwd="sub dir")
    assert wrap_output(await tool.call(wanted, context)).text.startswith("sub dir\n")
    for cwd in ("none", "file", "out", "../x", "/etc", "sub dir/../.."):
        with pytest.raises(ToolFailed):
            await tool.call(RunCommandArguments(command="pwd", cwd=cwd), context)


def test_the_folder_is_part_of_what_is_approved(tmp_path: Path) -> None:
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "x.sh").write_text(place)
    told = {bind(RunCommandArguments(command="sh x.sh", cwd=one), tmp_path) for one in ("a", "b")}
    assert len(told) == 2
