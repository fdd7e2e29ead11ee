"""Foreign patterns are matched in time that grows as the name does."""

import fnmatch
import itertools
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.errors import ToolFailed
from agent_core.handoffs import artifacts
from agent_core.tools import paths, shell
from agent_core.tools.files import ListFilesArguments, entries
from agent_core.tools.globs import MAX_WILDCARDS, Glob

LONG = "a" * 250
UNITS = ("*a", "?*", "*?", "[ab]*", "**/", "**/a/", "*/", "**", "***/", "*.*", "a*/**/")
ENDS = ("", "b", "*b", "**/b", "/", "/**")
PATTERNS = [unit * n + end for unit, end in itertools.product(UNITS, ENDS) for n in (1, 6, 11, 60)]
SECONDS = 6.0
"""Of this process, on a slow machine."""


def spend(work: object) -> float:
    began = time.process_time()
    try:
        assert callable(work)
        work()
    except ToolFailed:
        pass
    return time.process_time() - began


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ws")
    (folder / LONG).write_text("x")
    (folder / "incoming").mkdir()
    (folder / "incoming" / LONG).write_text("x")
    deep = folder.joinpath(*"a" * 40)
    deep.mkdir(parents=True)
    (deep / "a.txt").write_text("x")
    return folder


@pytest.mark.pick("quick listings", 60)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_listing_is_quick(pattern: str, workspace: Path) -> None:
    for start in ("", "incoming/"):
        assert (
            spend(lambda s=start: entries(ListFilesArguments(pattern=s + pattern), workspace))
            < SECONDS
        )


@pytest.mark.pick("a pattern of an approval", 12)
@pytest.mark.pick("quick approvals", 60)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_an_approval_is_bound_quickly(pattern: str, workspace: Path) -> None:
    assert (
        spend(lambda: shell.bind(shell.RunCommandArguments(command=f"ls {pattern}x"), workspace))
        < SECONDS
    )
    assert spend(lambda: artifacts.collect(workspace, [pattern])) < SECONDS


def test_many_words_and_patterns_are_bound_quickly(workspace: Path) -> None:
    words = " ".join(f"{n:x}" for n in range(15_000))
    assert spend(lambda: shell.bind(shell.RunCommandArguments(command=words), workspace)) < SECONDS
    wild = " ".join(f"*{n:x}*" for n in range(10_000))
    assert spend(lambda: shell.bind(shell.RunCommandArguments(command=wild), workspace)) < SECONDS


def test_a_wild_pattern_is_bound_to_all_files(workspace: Path) -> None:
    command = shell.RunCommandArguments(command="sh " + "*" * 500)
    before = shell.bind(command, workspace)
    (workspace / "incoming" / "new.sh").write_text("x")
    try:
        assert shell.bind(command, workspace) != before
    finally:
        (workspace / "incoming" / "new.sh").unlink()


def test_ten_times_the_name_is_ten_times_the_time() -> None:
    for unit in UNITS:
        glob = Glob(unit * (MAX_WILDCARDS // (unit.count("*") + unit.count("?"))) + "b")

        def match(length: int, glob: Glob = glob) -> float:
            names = "/".join(["a" * 250] * length)
            return min(spend(lambda: [glob.fits(names) for _ in range(20)]) for _ in range(3))

        assert match(200) < 15 * match(20) + 0.05, unit


ALPHABET = st.sampled_from("ab.*?")


@given(st.text(ALPHABET, min_size=1, max_size=10), st.text(st.sampled_from("ab."), max_size=10))
def test_a_part_fits_as_fnmatch_says(pattern: str, name: str) -> None:
    if pattern.strip(".") == "" or (set(pattern) == {"*"} and len(pattern) > 1):
        return
    assert Glob(pattern).fits(name) == fnmatch.fnmatchcase(name, pattern)


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("*", ("a", "a.py"), ("a/b",)),
        ("**/*.py", ("a.py", "a/b/c.py"), ("a.js", "a.py/x")),
        ("a/**/b", ("a/b", "a/x/b", "a/x/y/b"), ("b", "a/x")),
        ("a/**", ("a/b", "a/b/c"), ("a", "b/a")),
        ("**/**/x", ("x", "a/x"), ("a",)),
        ("./a?.txt", ("ab.txt",), ("a.txt", "a/.txt")),
        ("[id].tsx", ("[id].tsx",), ("i.tsx",)),
    ],
)
def test_what_fits(pattern: str, fitting: tuple[str, ...], others: tuple[str, ...]) -> None:
    glob = Glob(pattern)
    assert [name for name in (*fitting, *others) if glob.fits(name)] == list(fitting)


def test_a_walk_has_a_budget(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "MAX_ENTRIES", 10)
    said = entries(ListFilesArguments(pattern="**"), workspace)
    assert "only the first" in said and said.count("\n") <= 12
    monkeypatch.setattr(paths, "MAX_ENTRIES", 50_000)
    monkeypatch.setattr(paths, "MAX_SECONDS", 0.0)
    assert entries(ListFilesArguments(pattern="**"), workspace).count("\n") < 40
