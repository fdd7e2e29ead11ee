"""How long an unused sandbox stays: by its last use, and by the tool that used it."""

import asyncio
from pathlib import Path

import pytest

from agent_core.sandboxes.commands.background import Background
from agent_core.sandboxes.commands.shells import Shells
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.unsafe import UnsafeTier
from agent_core.tools.code import all as code
from agent_core.tools.code import sandboxed
from agent_core.tools.code.bash import Bash
from agent_core.tools.contract import ToolContext
from agent_core.tools.send import FileStore
from agent_core.tools.shell import command_tools
from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.ports import free_port
from tests.fakes.sandboxes import bwrap_sandbox, make_sandboxes
from tests.fakes.waiting import until

ECHO = "import socket\ns = socket.create_server(('127.0.0.1', {port}))\nprint('up', flush=True)\n"
ECHO += "c = s.accept()[0]\nwhile d := c.recv(9): c.send(d)"


def read_idle(pool: SandboxPool) -> int:
    """The minutes after which the one sandbox of the pool is going to be ended."""
    (place,) = pool._places.values()
    assert place.timer is not None
    return round((place.timer.when() - asyncio.get_running_loop().time()) / 60)


@NEEDS_BWRAP
async def test_it_stays_for_30_minutes_and_for_15_after_the_tools_of_a_separate_computer(
    tmp_path: Path,
) -> None:
    pool = bwrap_sandbox()
    bash = Bash(pool, Shells(), 60)
    known = code.every_code_tool(bash, FileStore(tmp_path / "kept"))
    tools = {one.name: one for one in (*known, *command_tools(pool, Background()))}
    place = tmp_path / "place"
    place.mkdir()
    context = ToolContext(workspace=place, key="k", limit=60, output=lambda _: None)

    async def use(name: str, **given: object) -> int:
        await tools[name].call(tools[name].arguments.model_validate(given), context)
        return read_idle(pool)

    assert await use("run_command", command="true") == 30
    assert await use("sandbox_shell", command="x=1") == 15
    assert await use("sandbox_shell", command="ls") == 15, "what only reads runs beside the shell"
    assert await use("bash", command="x=2") == 30
    assert await use("sandbox_shell", command="x=3") == 15
    assert await use("python_execute", code="print(1)") == 30, "by the last use"
    bash.shells.halt()


@pytest.mark.parametrize(("seconds", "minutes"), [(sandboxed.IDLE, 15), (9_000.0, 30), (0.0, 30)])
async def test_the_next_command_is_told_why(seconds: float, minutes: int, tmp_path: Path) -> None:
    pool = make_sandboxes(UnsafeTier())
    await pool.run("true", tmp_path, 10, lambda _: None)
    if seconds:
        pool.end_when_idle(tmp_path, seconds)
    (known,) = pool._places.items()
    pool._expire(*known)
    assert not pool._places
    done = await pool.run("echo on", tmp_path, 10, lambda _: None)
    assert f"was idle for {minutes} minutes" in done.output and read_idle(pool) == 30


async def test_one_whose_server_talks_with_a_person_is_in_use(tmp_path: Path) -> None:
    pool, port = make_sandboxes(UnsafeTier(), idle=0.5), free_port()
    (tmp_path / "app.py").write_text(ECHO.format(port=port))
    await pool.run("python3 app.py > log 2>&1 & until grep up log; do :; done", tmp_path, 20, print)
    reader, writer = await pool.connect(tmp_path, port)
    for _ in range(12):
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        await asyncio.sleep(0.1)
    assert pool._places, "its connection carried data all the time"
    await until(lambda: not pool._places)
    assert await reader.read() == b"", "idle, it is ended, and so is the connection"
    writer.close()
