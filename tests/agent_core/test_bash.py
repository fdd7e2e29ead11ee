"""bash: a shell that stays, what is kept of it, its ends, and that nothing is left of it."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from agent_core.errors import ToolFailed
from agent_core.messages import wrap_output
from agent_core.sandboxes.commands import shells
from agent_core.sandboxes.commands.background import Background
from agent_core.sandboxes.commands.session import ShellOutput
from agent_core.sandboxes.port import Sandbox
from agent_core.tools.code.bash import Bash, BashArguments, bash_tool, bind
from agent_core.tools.contract import ToolContext
from gateway.ops.event_loop import EventLoop
from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.processes import a_mark, alive, gone, there
from tests.fakes.sandboxes import bwrap_sandbox, unsafe_sandbox
from tests.fakes.waiting import PATIENCE
from tests.sampling import one_of

ISOLATED = pytest.param(bwrap_sandbox(), marks=NEEDS_BWRAP)
both = pytest.mark.parametrize("sandbox", one_of(ISOLATED, unsafe_sandbox()))


class Lent:
    """Whoever names TOKEN is given it."""

    def lend(self, workspace: Path, command: str) -> dict[str, str]:
        return {"TOKEN": "it's $hush"} if "TOKEN" in command else {}

    def hide(self, text: str) -> str:
        return text


class Desk:
    """The tool over one workspace, in one life of the gateway after another."""

    def __init__(self, sandbox: Sandbox, workspace: Path) -> None:
        self.sandbox, self.workspace = sandbox, workspace
        self.seen: list[str] = []
        self.began()

    def began(self, idle: float = 600.0) -> None:
        self.background = Background()
        bash = Bash(self.sandbox, self.background.shells, 60, Lent())
        self.tool = bash_tool(bash, idle=idle)

    async def run(self, command: str, **more: int) -> str:
        context = ToolContext(
            workspace=self.workspace, key="k", limit=60.0, output=self.seen.append
        )
        return wrap_output(
            await self.tool.call(BashArguments(command=command, **more), context)
        ).text


@pytest.fixture
async def desk(sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(sandbox, tmp_path)
    yield made
    await made.background.close()


# ---- what stays --------------------------------------------------------------------------


@both
async def test_folder_variables_and_functions_stay(desk: Desk) -> None:
    said = await desk.run(
        "mkdir -p a/b; cd a; N=1; export M=2; f() { echo $N$M; }; declare -A m=([k]=v)"
    )
    assert said == "(no output)\n[exit code 0]"
    assert (
        await desk.run("f; echo ${m[k]}; bash -c 'echo $M'; (exit 3)") == "12\nv\n2\n[exit code 3]"
    )
    assert (await desk.run("cd b; :; basename $PWD")).startswith("b\n")
    assert await desk.run("basename $PWD; false") == "b\n[exit code 1]"
    said = await desk.run("echo [$N]; basename $PWD", restart=True)
    assert said.startswith("[]\n") and "A new shell" not in said
    assert "\nb\n" not in said


@both
async def test_output_comes_live_and_commands_cannot_break_the_order(desk: Desk) -> None:
    said = await desk.run("echo out; echo err >&2; cat; printf 'a\\0b\\n'; break; return; if")
    assert said.startswith("/bin/bash: eval:"), "what is no command is told as bash does"
    said = await desk.run("echo out; echo err >&2; cat; printf 'a\\0b\\n'; break; exec 5>&1")
    assert said.startswith("out\nerr\na\0b\n") and said.endswith("[exit code 0]")
    assert "".join(desk.seen).endswith(said.rpartition("\n")[0] + "\n")
    assert await desk.run("echo 'it'\\''s'; # ende") == "it's\n[exit code 0]"


@both
async def test_what_runs_behind_is_heard_with_the_next_command(desk: Desk) -> None:
    await desk.run("mkfifo go; (read -r < go; echo behind; echo over > done) & :")
    said = await desk.run("echo > go; until [ -e done ]; do :; done; wait; echo here")
    assert sorted(said.splitlines()) == ["[exit code 0]", "behind", "here"]


@both
async def test_a_secret_is_there_for_the_command_that_names_it(desk: Desk) -> None:
    assert await desk.run("echo $TOKEN; export X=1") == "it's $hush\n[exit code 0]"
    said = await desk.run("echo $X; set; env")
    assert said.startswith("1\n") and "hush" not in said


# ---- its ends ----------------------------------------------------------------------------


@both
async def test_too_long_ends_it_with_all_that_it_started(desk: Desk) -> None:
    mark = a_mark()
    await desk.run("mkdir sub; cd sub; N=1")
    said = await desk.run(f"echo on; sleep {mark} & sleep {mark}", timeout=1)
    assert said == "on\n[stopped after 1 s]"
    await gone(mark)
    said = await desk.run("basename $PWD; echo [$N]")
    assert said.startswith("[A new shell, in sub: the one before is gone (it ended with: echo on")
    assert said.endswith("\nsub\n[]\n[exit code 0]")
    assert "A new shell" not in await desk.run("echo; true")


@both
async def test_a_command_that_ends_it_says_so(desk: Desk) -> None:
    said = await desk.run("echo bye; exit 4")
    assert said.startswith("bye\n[The shell ended") and said.endswith("[exit code 4]")
    assert "(it ended with: echo bye; exit 4)" in await desk.run("echo $0")


@both
async def test_a_new_life_of_the_gateway_begins_where_the_shell_was(desk: Desk) -> None:
    await desk.run("mkdir -p 'a b/c'; cd 'a b/c'; N=1")
    await desk.background.close()
    desk.began()
    said = await desk.run('basename "$PWD"; echo [$N]')
    assert said.startswith(
        "[A new shell, in a b/c: the one before is gone (the gateway was started"
    )
    assert said.endswith("\nc\n[]\n[exit code 0]")
    shutil.rmtree(desk.workspace / "a b")
    await desk.background.close()
    desk.began()
    assert "workspace's folder: a b/c is gone.]" in await desk.run("echo $0")


@both
async def test_it_is_ended_when_nobody_comes(desk: Desk) -> None:
    desk.began(idle=0.05)
    mark = a_mark()
    await desk.run(f"sleep {mark} & :")
    async with asyncio.timeout(PATIENCE):
        while desk.background.shells._shells:
            await asyncio.sleep(0.01)
    await gone(mark)
    assert "it was idle for" in await desk.run("echo $0")


@both
async def test_who_ended_it_is_told_whatever_ends_with_it(desk: Desk) -> None:
    for idle, reason in ((600.0, "its sandbox ended"), (0.3, "it was idle for 0.005 minutes")):
        desk.began(idle=idle)
        await desk.run("echo $0", restart=True)
        desk.sandbox.end_when_idle(desk.workspace, 0.01)  # before the shell's own time
        (shell,) = desk.background.shells._shells.values()
        async with asyncio.timeout(PATIENCE):
            while shell.alive or (idle < 1 and desk.background.shells._shells):
                await asyncio.sleep(0.01)
        assert f"is gone ({reason}), with" in await desk.run("echo $0")


@both
async def test_stop_and_cancellation_end_it(desk: Desk) -> None:
    mark = a_mark()
    await desk.run(f"sleep {mark} & :")
    await there(mark)
    desk.background.halt(desk.workspace)
    await gone(mark)
    assert "(it was stopped)" in await desk.run("echo $0")
    task = asyncio.ensure_future(desk.run(f"sleep {mark}"))
    await there(mark)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "(it was stopped)" in await desk.run("echo $0"), "it is not told to one that dies"
    await gone(mark)


@pytest.mark.parametrize("sandbox", [unsafe_sandbox()])
async def test_the_one_that_was_idle_longest_makes_room(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shells, "MAX_SHELLS", 2)
    marks = [a_mark() for _ in range(3)]
    top = desk.workspace
    for mark in marks:
        desk.workspace = top / mark
        desk.workspace.mkdir()
        await desk.run(f"sleep {mark} & :")
        await there(mark)
    await gone(marks[0])
    assert alive(marks[1]) and alive(marks[2])
    desk.workspace = top / marks[0]
    assert "others needed its place" in await desk.run("echo $0")


@both
async def test_calls_at_once_take_turns(desk: Desk) -> None:
    said = await asyncio.gather(*(desk.run(f"N=${{N}}{n}; echo $N") for n in range(5)))
    assert [one.partition("\n")[0] for one in said] == ["0", "01", "012", "0123", "01234"]


@both
async def test_what_no_shell_takes_is_refused(desk: Desk) -> None:
    for command in ("echo \0", "echo \ud800", "x" * 60_000):
        with pytest.raises(ToolFailed):
            await desk.run(command)
    with pytest.raises(ToolFailed, match="Give a command"):
        await desk.run("")
    assert "The next command gets" in await desk.run("", restart=True)


# ---- what only looks ---------------------------------------------------------------------


@pytest.mark.parametrize("sandbox", [ISOLATED])
async def test_what_is_allowed_unasked_is_not_what_the_shell_was_told(desk: Desk) -> None:
    await desk.run("mkdir sub; echo x > sub/real; ls() { echo poisoned > bad; }; cd() { :; }")
    assert await desk.run("cd sub && ls") == "real\n[exit code 0]"
    assert await desk.run("ls; pwd") == "real\n/workspace/sub\n[exit code 0]", "it went there"
    assert not list(desk.workspace.rglob("bad"))
    assert await desk.run("echo $(type -t ls)") == "function\n[exit code 0]", (
        "the shell is asked for"
    )
    assert await desk.run(": $(ls); cat bad") == "poisoned\n[exit code 0]"


@pytest.mark.parametrize("sandbox", [ISOLATED])
async def test_nothing_is_looked_at_from_outside(desk: Desk) -> None:
    await desk.run("cd /tmp; echo x > there")
    with pytest.raises(ToolFailed, match="outside of the workspace"):
        await desk.run("ls")
    assert await desk.run("bash -c ls") == "there\n[exit code 0]"


@pytest.mark.parametrize("sandbox", [ISOLATED])
async def test_an_approval_holds_for_folder_and_files(desk: Desk) -> None:
    run = BashArguments(command="sh go.sh")
    await desk.run("mkdir sub; echo 1 > sub/go.sh; echo 1 > go.sh; true $0")
    before = bind(run, desk.workspace)
    assert bind(run, desk.workspace) == before
    await desk.run("cd sub")
    inside = bind(run, desk.workspace)
    await desk.run("echo 2 > go.sh")
    assert len({before, inside, bind(run, desk.workspace)}) == 3


@pytest.mark.parametrize("sandbox", [ISOLATED])
async def test_a_long_output_does_not_lose_the_folder(desk: Desk) -> None:
    (desk.workspace / "a").mkdir()
    (desk.workspace / "a/long").write_text("x" * 2_000_000)
    said = await desk.run("cd a && cat long")
    assert "bytes in the middle were left out" in said and "\0" not in said
    assert (await desk.run("pwd")).startswith("/workspace/a\n")


@both
async def test_who_gives_up_waiting_does_not_end_who_is_at_work(desk: Desk) -> None:
    desk.began(idle=0.0)
    (desk.workspace / "go").mkdir()
    first = asyncio.ensure_future(desk.run("until [ -e go/on ]; do sleep 0.01; done; echo well"))
    place = desk.background.shells._shells
    async with asyncio.timeout(PATIENCE):
        while not (place and next(iter(place.values())).alive):
            await asyncio.sleep(0)
    second = asyncio.ensure_future(desk.run("echo never"))
    async with asyncio.timeout(PATIENCE):
        while next(iter(place.values())).waiting < 2:
            await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([second])
    await asyncio.to_thread(lambda: None)  # a clock that was set has rung by now
    (desk.workspace / "go/on").touch()
    assert (await first).startswith("well")


# ---- the stream --------------------------------------------------------------------------


@given(st.lists(st.sampled_from([b"a", b"\0", b"\0m", b"\0mark", b"mark ", b"\n"]), max_size=12),
       st.lists(st.integers(0, 60), max_size=8))  # fmt: skip
async def test_a_stream_is_parted_at_its_mark_however_it_comes(
    pieces: list[bytes], cuts: list[int]
) -> None:
    said = b"".join(pieces).replace(b"\0mark ", b"\0mork ")
    whole = said + b"\0mark 7 /a b\0later"
    stream, live = ShellOutput(), list[str]()
    over = stream.begin(b"\0mark ", live.append)
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    for start, end in zip(places, places[1:], strict=False):
        stream.add(whole[start:end])
    ran = await over
    assert ran is not None and (ran.done.exit_code, ran.folder) == (7, "/a b")
    assert ran.done.output.encode() == said == "".join(live).encode()
    assert stream.text() == "later", "it belongs to the next one"


async def test_a_mark_that_was_found_out_holds_nothing_back() -> None:
    """What comes behind it and never ends is output like any other: bounded, and counted."""
    stream = ShellOutput()
    stream.begin(b"\0mark ", lambda text: None)
    stream.add(b"\0mark ")
    for _ in range(100):
        stream.add(b"x" * 10_000)
    assert stream.total > 900_000 and len(stream._held) < 50_000


# ---- the loop's end ----------------------------------------------------------------------


async def _given_up(workspace: Path, moments: int) -> None:
    pool = unsafe_sandbox()
    call = asyncio.ensure_future(pool.run("sleep 50", workspace, 60, lambda text: None))
    for _ in range(moments):
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call])
    await pool.close()


@pytest.mark.parametrize("factory", one_of(EventLoop, uvloop.new_event_loop))
def test_a_loop_can_close_when_a_call_was_given_up(
    tmp_path: Path, factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """uvloop's does not, over a process that is just dying (seen in one of four lives): a sandbox
    whose first call was given up, at whatever moment, is seen gone when all are closed."""
    for moments in range(40):
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(_given_up(tmp_path, moments))


async def test_a_shell_that_was_idle_is_gone_too_when_all_are_closed(tmp_path: Path) -> None:
    desk = Desk(unsafe_sandbox(), tmp_path)
    desk.began(idle=0.0)
    await desk.run("echo")
    (place,) = desk.background.shells._shells.values()
    while desk.background.shells._shells:
        await asyncio.sleep(0)
    await desk.background.close()
    assert place.session is not None and place.session.gone
