"""What a quick run takes of what is generated."""

from collections import Counter
from pathlib import Path
from typing import cast

import pytest
from hypothesis import Phase, given, settings
from hypothesis.strategies import integers

from tests import sampling


def test_a_quick_run_tries_fewer_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "_quick", False)
    sampling.read_marks("kills and not sampled")
    assert sampling.examples(90) == 90
    sampling.read_marks("not slow")
    quick = 90 // sampling.QUICK
    assert 1 < quick < 30 and (sampling.examples(90), sampling.examples(1)) == (quick, 1)


def test_a_part_of_the_proofs_imports_its_own_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "_quick", False)
    monkeypatch.setattr(sampling, "_part", "")
    kept = Counter[str]()
    files = [str(path) for path in Path(__file__).parent.rglob("test_*.py")]
    for marks in ("not slow", "timing", "slow or not slow", ""):
        sampling.read_marks(marks)
        assert not any(map(sampling.is_of_other_part, files))
    for part in (*sampling.PARTS, "rest"):
        sampling.read_marks(f"{part} and not sampled")
        kept.update(path for path in files if not sampling.is_of_other_part(path))
    assert kept == Counter(files), "each is of one part"


def test_every_case_is_taken_by_some_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = set()
    for seed in range(200):
        monkeypatch.setattr(sampling, "SEED", str(seed))
        (one,) = sampling.take(range(10), 1, "a group")
        points = sampling.spread(12, sampling.SOME, "a story")
        assert len(points) == sampling.SOME
        taken |= {("case", one), *(("point", point) for point in points)}
    assert len(taken) == 10 + 12


def test_of_a_function_one_that_is_not_slow_is_taken(request: pytest.FixtureRequest) -> None:
    taken = Counter(
        item.nodeid.partition("[")[0]
        for item in request.session.items
        if (mark := item.get_closest_marker("pick")) and not mark.args
        if not item.get_closest_marker("slow")
    )
    assert set(taken.values()) <= {1}


def test_of_a_function_with_cases_a_part_is_taken_by_a_quick_run() -> None:
    taken = _take_quickly([*(f"f[{n}]" for n in range(7)), "g[a]", "g[b]", "alone"])
    assert taken == {"f": 2, "g": 1, "alone": 1}


def test_of_a_file_whose_tests_take_long_a_part_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    file = "tests/agent_core/test_landlock.py"
    names = [*(f"{file}::f{n}" for n in range(6)), f"{file}::g[1]", f"{file}::g[2]", "t.py::alone"]
    taken: Counter[str] = Counter()
    for seed in range(40):
        monkeypatch.setattr(sampling, "SEED", str(seed))
        quick = _take_quickly(names)
        assert sum(quick.values()) == 3 + 1 and quick["t.py::alone"] == 1
        taken += quick
    assert len(taken) == 8, "each by some seed"


def _take_quickly(names: list[str]) -> Counter[str]:
    """Return how many cases of each function a quick run takes."""
    items = [_Item(name) for name in names]
    sampling.mark_what_is_left(cast("list[pytest.Item]", items))
    return Counter(one.nodeid.partition("[")[0] for one in items if not one.marks)


class _Item:
    """A test as far as marks go."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid
        self.marks: list[object] = []

    def get_closest_marker(self, _: str) -> object:
        return self.marks[0] if self.marks else None

    def add_marker(self, mark: object) -> None:
        self.marks.append(mark)


def test_values_keep_their_marks_and_names() -> None:
    one, other = sampling.one_of(pytest.param(1, id="one", marks=pytest.mark.slow), 2)
    assert (one.values, one.id, {mark.name for mark in one.marks}) == (
        (1,),
        "one",
        {"slow", "pick"},
    )
    assert (other.values, {mark.name for mark in other.marks}) == ((2,), {"pick"})


def test_each_case_draws_examples_of_its_own() -> None:
    """So that parts of a large set are not the same part again and again."""

    def draw(name: str) -> list[int]:
        drawn = []

        @settings(max_examples=20, database=None, phases=(Phase.generate,))
        @given(number=integers())
        def note(number: int) -> None:
            drawn.append(number)

        sampling.seed_examples(name)
        note()
        return drawn

    assert draw("hours[0]") == draw("hours[0]") != draw("hours[1]")
