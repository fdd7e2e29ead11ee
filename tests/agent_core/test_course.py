"""A course of commands and programs as people's agents write them: nearly all run unasked where a
sandbox contains them, and each gives a useful result or an error that says what to do.

`make prove` takes all of it in each tier, `make test` a few groups in one; `pytest -s` prints the count.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent_core.messages import ToolOutput
from agent_core.sandboxes.commands.advice import advise, explain_end
from agent_core.sandboxes.commands.background import Background
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.port import ProcessResult
from agent_core.tools.contract import ToolContext
from agent_core.tools.shell import command_tools
from tests.fakes.course import Told, read_course, take
from tests.fakes.needs import NEEDS_BWRAP, NEEDS_LANDLOCK
from tests.fakes.sandboxes import find_tier, make_sandboxes

COURSE = read_course()
LEAST_UNASKED = 0.95


@pytest.fixture(
    params=[
        pytest.param("bwrap", marks=NEEDS_BWRAP),
        pytest.param("landlock", marks=(NEEDS_LANDLOCK, pytest.mark.slow)),
        pytest.param("docker", marks=pytest.mark.slow),
    ]
)
async def pool(request: pytest.FixtureRequest) -> SandboxPool:
    return make_sandboxes(await find_tier(request))


def test_the_course_is_as_long_as_it_is_said_to_be() -> None:
    lessons = [one for group in COURSE.values() for one in group]
    assert sum(not one.language for one in lessons) >= 200
    assert sum(bool(one.language) for one in lessons) >= 40


@pytest.mark.pick("groups of the course", 1)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("group", COURSE)
async def test_each_gives_a_result_or_says_what_to_do(
    group: str, pool: SandboxPool, tmp_path: Path
) -> None:
    told = [
        await take(pool, lesson, tmp_path, f"{group}/{n}") for n, lesson in enumerate(COURSE[group])
    ]
    wrong = [f"{one.lesson.words}\n-> {one.ruling}\n{one.output}" for one in told if not one.good]
    assert not wrong, "\n----\n".join(wrong)
    print(describe(pool, group, told))


def describe(pool: SandboxPool, group: str, told: list[Told]) -> str:
    asked = sum(one.ruling != "allow" for one in told)
    without = sum(one.uncontained != "allow" for one in told)
    shut = sum(one.ruling == "allow" and not one.lesson.works for one in told)
    lacks = sum(one.lacks and one.lesson.works for one in told)
    counts = f"{len(told)}, asked {asked} (uncontained {without}), shut {shut}, lacks {lacks}"
    return f"course {pool.name} {group}: {counts}"


def test_nearly_all_run_without_a_press() -> None:
    lessons = [one for group in COURSE.values() for one in group]
    asked = [one for one in lessons if one.hosts]
    assert len(asked) <= len(lessons) * (1 - LEAST_UNASKED)


@pytest.mark.parametrize(
    ("output", "code", "says"),
    [
        ("bash: line 1: jq: command not found", 127, "jq is not installed"),
        ("/bin/sh: 1: jq: not found", 127, "jq is not installed"),
        ("/bin/bash: line 1: awk: command not found", 0, "awk is not installed"),
        ("grep: x: not found", 1, ""),
        ("No module named 'x' is what it said", 0, ""),
        ("ModuleNotFoundError: No module named 'pandas'", 1, "module pandas is not"),
        ("/usr/bin/python3: No module named pytest", 1, "module pytest is not"),
        ("Error: Cannot find module 'express'", 1, "module express is not"),
        ("Error: Cannot find module './own.js'", 1, ""),
        ("touch: cannot touch '/usr/x': Read-only file system", 1, "Only the workspace"),
        ("E: Unable to acquire the lock, are you root?", 100, "Nobody is root"),
        ("/bin/bash: line 1: ./x.sh: Permission denied", 126, "chmod +x"),
        ("bash: /dev/udp/127.0.0.1/9: Permission denied", 1, ""),
        ("AssertionError", 1, ""),
        ("bash: line 1: sudo: command not found", 127, "leave out sudo"),
        ("bash: line 1: apt-get: command not found", 127, "leave out sudo"),
        ("bash: line 1: pseudo: command not found", 127, "pseudo is not installed"),
        ("Cannot connect to the Docker daemon at unix:///x. Is it running?", 1, "no container"),
        ("bash: line 1: docker-compose: command not found", 127, "no container"),
        ("System has not been booted with systemd", 1, "in the background"),
        ("EOFError: EOF when reading a line", 1, "Nobody types here"),
        ("Vim: Warning: Output is not to a terminal", 137, "without an editor"),
        ("error: Terminal is dumb, but EDITOR unset", 1, "GIT_SEQUENCE_EDITOR=true"),
        ("OSError: [Errno 98] Address already in use", 1, "at that port"),
        ("bash: line 1: kill: %1: no such job", 1, "End what stayed by its number"),
        ("E: List directory /var/lib/apt/lists/partial is missing.", 100, "Nobody is root"),
        ("su: Authentication failure", 1, "Nobody is root"),
        ("Address already in use", 0, ""),
        ("dd: error writing '/dev/shm/x': No space left on device", 1, "/dev/shm holds 512 MB"),
        ("OSError: [Errno 24] Too many open files: 'x'", 1, "one process may have open"),
        ("RuntimeError: can't start new thread", 1, "processes and threads"),
        ("bash: fork: retry: Resource temporarily unavailable", 1, "processes and threads"),
    ],
)
def test_what_is_missing_is_named_with_the_way_to_it(output: str, code: int, says: str) -> None:
    said = advise(output, code)
    assert says in said if says else not said


@pytest.mark.parametrize(
    ("command", "code", "more", "says"),
    [
        ("pkill -f server; echo", 143, {}, "SIGTERM ended the command itself"),
        ("killall -9 bash", 137, {}, "SIGKILL ended the command itself"),
        ("pkill -f server", 137, {"timed_out": True}, ""),
        ("pkill -f server", 137, {"reason": "memory"}, ""),
        ("sleep 9 & kill $!; wait $!", 143, {}, ""),
        ("./crash", 139, {}, "crashed: SIGSEGV"),
        ("dd of=x", 153, {}, "over 1 GB in one file"),
        ("./writes", 1, {"output": "OSError: [Errno 27] File too large"}, "over 1 GB in one file"),
        ("exit 200", 200, {}, ""),
        ("exit 255", 255, {}, ""),
        ("true", 0, {}, ""),
    ],
)
def test_how_a_command_ended_is_said_where_nothing_else_says_it(
    command: str, code: int, more: dict[str, Any], says: str
) -> None:
    done = ProcessResult(**{"exit_code": code, "output": "", "timed_out": False} | more)
    said = explain_end(command, done)
    assert says in said if says else not said


HANGS = {
    "sleep 1000": "",
    "echo begun; sleep 1000 & sleep 1000": "begun",
    "mkfifo pipe; cat pipe": "",
    "(trap '' TERM HUP INT; echo deaf; sleep 1000)": "deaf",
    "while true; do echo tick; sleep 0.2; done": "tick",
    "python3 -c 'import time; print(1); time.sleep(1000)'": "1",
}


@pytest.mark.pick("commands that hang", 1)
@pytest.mark.parametrize("command", HANGS)
async def test_one_that_hangs_is_ended_with_what_it_wrote_and_the_way_on(
    command: str, pool: SandboxPool, tmp_path: Path
) -> None:
    tool = command_tools(pool, Background())[0]
    context = ToolContext(workspace=tmp_path, key="k", limit=60, output=lambda _: None)
    arguments = tool.arguments.model_validate({"command": command, "timeout": 1})
    gave = await tool.call(arguments, context)
    assert isinstance(gave, ToolOutput)
    assert HANGS[command] in gave.text and gave.text.endswith("[stopped after 1 s]")
    assert "`timeout` gives a command more seconds" in gave.text
    again = await pool.run("echo on", tmp_path, 20, lambda _: None)
    assert again.output == "on\n" and again.exit_code == 0, "the same sandbox goes on"


@pytest.mark.pick("commands that leave something", 1)
@pytest.mark.parametrize(
    "command",
    ["sleep 300 & echo on", "(sleep 300 &); echo on", "setsid sleep 300 & echo on",
     "nohup sleep 300 >/dev/null 2>&1 & echo on", "(trap '' HUP; sleep 300) & disown; echo on"],
)  # fmt: skip
async def test_what_holds_the_output_open_holds_nobody_up(
    command: str, pool: SandboxPool, tmp_path: Path
) -> None:
    async with asyncio.timeout(60):
        done = await pool.run(command, tmp_path, 300, lambda _: None)
    assert done.output == "on\n" and done.exit_code == 0


@pytest.mark.pick("patterns that end their own command", 1)
async def test_a_pattern_that_ends_its_own_command_is_told(
    pool: SandboxPool, tmp_path: Path
) -> None:
    await pool.run("sleep 321 & echo on", tmp_path, 20, lambda _: None)
    done = await pool.run("pkill -f 'sleep 321'; echo never", tmp_path, 20, lambda _: None)
    if pool.name == "landlock":  # which shows no processes
        assert done.output.startswith("never\n") and "find none" in done.output
    else:
        assert "SIGTERM ended the command itself" in done.output and "never" not in done.output
        done = await pool.run("pkill -f '[s]leep 321'; echo rest", tmp_path, 20, lambda _: None)
        assert done.output == "rest\n"
