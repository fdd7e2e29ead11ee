"""What commands left running and is gone, is told to the model once: with its words and ports."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from agent_core.sandboxes.commands.shells import Shells
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.port import NO_PERMITS, Permits
from agent_core.sandboxes.states.running import _Page
from agent_core.sandboxes.tier import Tier
from agent_core.sandboxes.unsafe import UnsafeTier
from agent_core.tools.code.bash import Bash, BashArguments, bash_tool
from agent_core.tools.contract import ToolContext
from agent_core.tools.paths import OWN
from tests.fakes.ports import free_port
from tests.fakes.sandboxes import BWRAP, DOCKER, LANDLOCK, UNSAFE, make_sandboxes
from tests.fakes.waiting import until
from tests.sampling import one_of

each = pytest.mark.parametrize("tier", one_of(BWRAP, LANDLOCK, UNSAFE, DOCKER), indirect=True)
GONE = "Not running any more"
LENT = Permits(env={"KEY": "hunter22"})
SERVER = "python3 -m http.server {port} --bind 127.0.0.1"


async def run(pool: SandboxPool, command: str, place: Path, permits: Permits = NO_PERMITS) -> str:
    return (await pool.run(command, place, 20, lambda _: None, permits)).output


def read(place: Path) -> _Page:
    try:
        return msgspec.json.decode((place / OWN / "running.json").read_bytes(), type=_Page)
    except FileNotFoundError:
        return _Page()


def runs(place: Path, port: int) -> Callable[[], bool]:
    """The file says that a server at the port runs."""
    return lambda: any(port in one.ports for one in (*read(place).plain, *read(place).revealing))


async def leave(how: str, pool: SandboxPool, place: Path, port: int) -> None:
    """Start a server that stays."""
    server = SERVER.format(port=port)
    if how == "background":
        await pool.start(f"cd . || exit\n{server}", place, 60)
    elif how == "shell":
        tool = bash_tool(Bash(pool, Shells(), 60))
        context = ToolContext(workspace=place, key="k", limit=60, output=lambda _: None)
        await tool.call(BashArguments(command=f"{server} > log 2>&1 &"), context)
    elif how == "reveals":
        await pool.start(server, place, 60, Permits(reveals=True))
    else:
        await run(pool, f"{how.format(server=server)} > log 2>&1 &", place)
    await until(runs(place, port))


def kill_gateway(pool: SandboxPool) -> None:
    """End it as `kill -9` does: nothing is done at the end."""
    for place in pool._places.values():
        place.cancel_timers()
        assert place.sandbox is not None
        place.sandbox.link.on_running = None
        place.sandbox.link.close()


@each
@pytest.mark.parametrize(
    "how", ["background", "{server}", "nohup setsid {server}", "shell", "reveals"]
)
async def test_after_a_restart_the_next_command_is_told_what_had_been_running(
    tier: Tier, how: str, tmp_path: Path
) -> None:
    pool, port = make_sandboxes(tier), free_port()
    await leave(how, pool, tmp_path, port)
    assert GONE not in await run(pool, "echo one", tmp_path), "it runs"
    kill_gateway(pool)
    pool = make_sandboxes(tier)
    said = await run(pool, "echo two", tmp_path)
    assert said.count(GONE) == 1 and said.endswith("two\n")
    assert f"-m http.server {port}" in said and f"(port {port})" in said
    assert await run(pool, "echo three", tmp_path) == "three\n", "once"
    await until(lambda: not read(tmp_path).gone)
    kill_gateway(pool)
    assert GONE not in await run(make_sandboxes(tier), "echo four", tmp_path)


@each
@pytest.mark.parametrize("end", ["close", "halt", "idle", "lost", "halt and kill"])
async def test_however_the_sandbox_ended(tier: Tier, end: str, tmp_path: Path) -> None:
    pool, port = make_sandboxes(tier), free_port()
    await leave("{server}", pool, tmp_path, port)
    (known,) = pool._places.items()
    assert known[1].sandbox is not None
    if end == "close":
        await pool.close()
        pool = make_sandboxes(tier)
    elif end == "halt":
        pool.halt(tmp_path)
    elif end == "idle":
        pool._expire(*known)
    elif end == "lost":
        known[1].sandbox.link.close()
        await known[1].sandbox.link.gone
    else:
        pool.halt()
        await until(lambda: read(tmp_path).gone and not read(tmp_path).plain)
        kill_gateway(pool)
        pool = make_sandboxes(tier)
    said = await run(pool, "echo on", tmp_path)
    assert said.count(GONE) == 1 and f"(port {port})" in said
    assert await run(pool, "echo on", tmp_path) == "on\n"


@each
@pytest.mark.parametrize(
    "command", ["true", "sleep 0.4", "sleep 0.3 & wait", "sleep 60 & kill $!", "exit 3"]
)
async def test_what_ended_by_itself_is_not_told(tier: Tier, command: str, tmp_path: Path) -> None:
    pool = make_sandboxes(tier)
    await run(pool, command, tmp_path)
    await asyncio.sleep(1.0)  # some looks of the supervisor, which may see one that is ending
    await until(lambda: not read(tmp_path).plain)
    kill_gateway(pool)
    assert await run(make_sandboxes(tier), "echo on", tmp_path) == "on\n"


@each
async def test_a_command_under_way_is_none_that_stays(tier: Tier, tmp_path: Path) -> None:
    pool = make_sandboxes(tier)
    under_way = asyncio.ensure_future(run(pool, "touch begun; sleep 60", tmp_path))
    await until((tmp_path / "begun").exists)
    await run(pool, "sleep 0.6", tmp_path)
    kill_gateway(pool)
    await under_way
    assert await run(make_sandboxes(tier), "echo on", tmp_path) == "on\n"


@each
async def test_the_lasting_shell_is_told_too(tier: Tier, tmp_path: Path) -> None:
    pool, port = make_sandboxes(tier), free_port()
    await leave("{server}", pool, tmp_path, port)
    kill_gateway(pool)
    tool = bash_tool(Bash(make_sandboxes(tier), Shells(), 60))
    context = ToolContext(workspace=tmp_path, key="k", limit=60, output=lambda _: None)
    first, second = [
        await tool.call(BashArguments(command="x=1; echo on"), context) for _ in range(2)
    ]
    end = "\n[exit code 0]"
    assert f"(port {port})" in first.text and first.text.endswith(f"on{end}")
    assert second.text == f"on{end}"
    assert first.command is not None and first.command.written == len(first.text) - len(end)


async def test_names_of_programs_are_data(tmp_path: Path) -> None:
    """No line of its own, no end of the note, no secret, and not too many or too long."""
    pool = make_sandboxes(UnsafeTier())
    odd = "exec -a $'x\\n] \\e[31m`rm`]' sleep 60 &"
    await run(pool, odd, tmp_path)
    await run(pool, f'exec -a "token=$KEY {"y" * 500}" sleep 60 &', tmp_path, LENT)
    await until(lambda: any("token=…" in one.words for one in read(tmp_path).plain))
    await run(pool, "for n in $(seq 20); do sleep 60 & done", tmp_path)
    await until(lambda: len(read(tmp_path).plain) == 12)
    stored = (tmp_path / OWN / "running.json").read_text()
    assert "hunter22" not in stored
    kill_gateway(pool)
    said = await run(make_sandboxes(UnsafeTier()), "echo on", tmp_path)
    note, _, rest = said.partition("\n")
    assert note.startswith(f"[{GONE}") and rest == "on\n" and "\x1b" not in note
    assert len(note) < 3_000 and note.count("`") % 2 == 0
