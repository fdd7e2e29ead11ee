"""What a quick run takes of what is generated."""

import pytest

from tests import sampling


def test_a_quick_run_tries_fewer_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "_quick", False)
    sampling.read_marks("kills and not sampled")
    assert sampling.examples(90) == 90
    sampling.read_marks("not slow")
    assert (sampling.examples(90), sampling.examples(1)) == (30, 1)


def test_every_case_is_taken_by_some_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = set()
    for seed in range(200):
        monkeypatch.setattr(sampling, "SEED", str(seed))
        (one,) = sampling.take(range(10), 1, "a group")
        points = sampling.spread(12, sampling.SOME, "a story")
        assert len(points) == sampling.SOME
        taken |= {("case", one), *(("point", point) for point in points)}
    assert len(taken) == 10 + 12
