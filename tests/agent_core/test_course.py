"""A course of commands and programs as people's agents write them: nearly all run unasked where a
sandbox contains them, and each gives a useful result or an error that says what to do.

`make prove` takes all of it in each tier, `make test` a few groups in one; `pytest -s` prints the count.
"""

from pathlib import Path

import pytest

from agent_core.sandboxes.commands.advice import advise
from agent_core.sandboxes.pool import SandboxPool
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
    ],
)
def test_what_is_missing_is_named_with_the_way_to_it(output: str, code: int, says: str) -> None:
    said = advise(output, code)
    assert says in said if says else not said
