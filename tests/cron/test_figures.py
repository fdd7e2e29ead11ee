"""Ten thousand jobs: what they cost while nothing is due, and how late one of them is."""

import pytest

from benchmarks.jobs import measure, met


@pytest.mark.timing
@pytest.mark.slow
def test_ten_thousand_jobs_cost_next_to_nothing() -> None:
    found = measure(10_000, 10.0, 100)
    assert met(found), found
