"""The evaluation suite, run once: each mechanism fires where there is something for it to do, does
not where it is switched off, and is worth it. The numbers are the same each time."""

import pytest

from benchmarks.agent.cases import CASES
from benchmarks.agent.course import measured
from benchmarks.agent.report import HEAD, Row

NAMED = (
    "classifier", "planner", "verify", "re-plan", "anti-repetition", "error rescue",
    "budget warning", "budget stop", "compression", "fallback", "memory", "tool search",
    "research citations",
)  # fmt: skip


def test_every_mechanism_has_a_case() -> None:
    assert tuple(case.name for case in CASES) == NAMED


@pytest.mark.parametrize("n", range(len(CASES)), ids=lambda n: CASES[n].name)
async def test_it_fires_and_is_worth_it(n: int) -> None:
    case = CASES[n]
    on, off = await measured(case.work, True), await measured(case.work, False)
    row = Row(case=case, on=on, off=off)
    assert row.fired and not case.fired(off)
    assert on.right and row.gains, row.line()
    again = await measured(case.work, True)
    assert again.numbers() == on.numbers(), "the same each time"
    assert row.line().count("|") == HEAD[0].count("|")
