"""The part of a generated set that a quick run takes, chosen by a seed that is printed.

What is not taken is marked slow: `make prove` runs it, and so does pytest without `-m`. Each value
comes up in the quick runs of other seeds. `TEST_SEED=…` repeats a run.
"""

import os
import random
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import PurePath
from typing import Any

import hypothesis.core
import pytest

SEED = os.environ.setdefault("TEST_SEED", str(random.randrange(100_000)))
"""In the environment, so that all workers of a run have the same one."""
QUICK = 8
"""One of so many of hypothesis's examples is tried by a quick run; each seed draws other ones."""
CASES = 5
"""One of so many cases of a function is run by a quick run, rounded up: of the four surfaces one."""

COSTLY = (
    *("test_web_jobs.py", "test_web_languages.py", "test_web_looks.py", "test_web_page.py"),
    *("test_web_story.py", "test_web_use.py", "test_browser_*.py", "test_documents.py"),
    *("test_e2b*.py", "test_landlock.py", "test_preview.py", "test_sandbox_network.py"),
    *("test_monty*.py", "test_tiers.py", "test_docker_settings.py", "test_offers.py"),
    *("test_mcp.py", "test_mcp_story.py", "test_sign_in_story.py", "test_elicitation_story.py"),
    *("test_resources_story.py", "test_installs_story.py", "test_group_sandbox_story.py"),
    *("test_profiles_story.py", "test_tools_story.py", "test_at_hand_story.py", "test_run.py"),
    *("test_output.py", "test_sandboxes.py", "test_scripts.py", "test_web_network.py"),
    *("test_looks.py", "test_described_api.py", "test_silent_stop.py"),
)
"""Files whose tests take seconds each: they start browsers, sandboxes, servers or gateways. A quick
run takes a part of the tests of each."""
SHARE = 3
"""One of so many tests of a costly file is run by a quick run, rounded up."""


def dice(*names: object) -> random.Random:
    """Chance that is the same in each run with this seed, and another for each name."""
    return random.Random("/".join(map(str, (SEED, *names))))


def seed_examples(name: str) -> None:
    """Let the test or the case of this name draw hypothesis's examples of its own: those of one
    seed for all would be the same in each part of a large set."""
    seed = dice("hypothesis", name).randrange(2**32)
    hypothesis.core.global_force_seed = seed  # type: ignore[assignment]  # as --hypothesis-seed does


def take(values: Sequence[Any], count: int, *names: object) -> list[Any]:
    """At most `count` of the values, in their order."""
    chosen = set(dice(*names).sample(range(len(values)), min(count, len(values))))
    return [value for n, value in enumerate(values) if n in chosen]


def mark_what_is_left(items: Iterable[pytest.Item]) -> None:
    """Mark as slow what a quick run leaves out: all but a few of the tests that bear the mark
    `pick`, all but a part of the cases of each function that has several, and all but a part of
    what then is left of the files that are `COSTLY`."""
    items = list(items)
    picked: dict[str, tuple[int, list[pytest.Item]]] = {}
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow"):
            continue
        function, *case = item.nodeid.split("[", 1)
        if mark := item.get_closest_marker("pick"):
            group, count = (*mark.args, 1)[:2] if mark.args else (function, 1)
            picked.setdefault(group, (count, []))[1].append(item)
        elif case:
            cases.setdefault(function, []).append(item)
    for group, (count, found) in picked.items():
        _leave(found, count, group)
    for function, found in cases.items():
        _leave(found, -(-len(found) // CASES), function)
    costly: dict[str, list[pytest.Item]] = {}
    for item in items:
        path = item.nodeid.partition("::")[0]
        if is_costly(path) and not item.get_closest_marker("slow"):
            costly.setdefault(path, []).append(item)
    for path, found in costly.items():
        _leave(found, -(-len(found) // SHARE), path)


@cache
def is_costly(path: str) -> bool:
    """Return True if a quick run takes a part of a file's tests."""
    return any(map(PurePath(path).match, COSTLY))


def _leave(found: list[pytest.Item], count: int, group: str) -> None:
    """Mark all but so many of them as slow."""
    found.sort(key=lambda item: item.nodeid)
    for item in set(found).difference(take(found, count, group)):
        item.add_marker(pytest.mark.slow)


def one_of(*values: Any) -> list[Any]:
    """Values of a parameter: a quick run takes one of them for each test that has it."""
    return [
        pytest.param(*one.values, id=one.id, marks=[*one.marks, pytest.mark.pick])
        if isinstance(one, pytest.ParameterSet)
        else pytest.param(one, marks=pytest.mark.pick)
        for one in values
    ]


_quick = False
_part = ""


def read_marks(expression: str) -> None:
    """Tell by the value of pytest's `-m` whether this run is quick, and which part of `make prove`
    it is; before tests are imported."""
    global _quick, _part
    _quick = "not slow" in expression
    _part = expression.partition(" ")[0]


def examples(count: int) -> int:
    """The value of hypothesis's `max_examples`: `count`, less in a quick run."""
    return max(count // QUICK, 1) if _quick else count


ALL = 0
SOME = 3
"""Points of a run that a quick proof disturbs."""


def some(count: int = SOME, group: str = "", picked: int = 1) -> Any:
    """A parameter: so many points in a quick run, which takes `picked` of the tests of a `group`.
    `make prove` passes it over, for it has `every`."""
    marks = [pytest.mark.sampled, *([pytest.mark.pick(group, picked)] if group else ())]
    return pytest.param(count, id="some", marks=marks)


def every() -> Any:
    """A parameter: all points, in a slow run."""
    return pytest.param(ALL, id="every", marks=pytest.mark.slow)


def some_and_every(count: int = SOME, group: str = "", picked: int = 1) -> Any:
    """A mark: the test has the argument `some`, how many points of a run it disturbs."""
    return pytest.mark.parametrize("some", [some(count, group, picked), every()])


def spread(size: int, count: int, *names: object) -> list[int]:
    """`count` of the numbers from 1 to `size`, one from each stretch of it; all for ALL."""
    if count == ALL or count >= size:
        return list(range(1, size + 1))
    edges = [1 + n * size // count for n in range(count + 1)]
    die = dice(*names)
    return [die.randrange(low, high) for low, high in zip(edges, edges[1:], strict=False)]


PARTS = {
    "kills": ("*_kills.py", "*/test_kills.py", "*/test_killed.py", "*/test_interference.py"),
    "faults": (
        *("*/test_fault*.py", "*/test_set_aside.py", "*/test_damaged_rows.py", "tests/replicas/*"),
        "*/test_redis_network.py",
    ),
    "stories": ("*_surfaces.py", "*_story.py", "*/test_drawing.py", "*/test_looks.py"),
    "models": (
        *("*/test_state_machine.py", "*/test_mutants.py", "*/test_rules.py", "*_proof.py"),
        "*/test_hours.py",  # thousands of starts, slow where other tests have filled the heap
    ),
}
"""Parts of `make prove`: each test has the mark of the first one that fits, or `rest`. Tests that
bear the mark `timing` are a part of their own, which runs alone."""


def mark_parts(items: Iterable[pytest.Item]) -> None:
    """Mark each test with its part."""
    for item in items:
        if not item.get_closest_marker("timing"):
            item.add_marker(find_part(item.nodeid.partition("::")[0]))


@cache
def find_part(path: str) -> str:
    """The part of `make prove` that the tests of a file belong to."""
    fitting = (part for part, globs in PARTS.items() if any(map(PurePath(path).match, globs)))
    return next(fitting, "rest")


def is_of_other_part(path: str) -> bool:
    """Return True for a file of tests that this run, one part of `make prove`, does not run."""
    return _part in (*PARTS, "rest") and find_part(path) != _part
