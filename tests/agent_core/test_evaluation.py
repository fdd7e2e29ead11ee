"""The evaluation suite, run once: each mechanism fires where there is something for it to do, does
not where it is switched off, and is worth it. The numbers are the same each time."""

import json

import pytest

from benchmarks.agent.__main__ import main
from benchmarks.agent.cases import CASES
from benchmarks.agent.course import measured
from benchmarks.agent.report import HEAD, Row
from tests.fakes.model_server import ModelServer

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
    assert row.fired and row.alone
    assert on.right and row.gains, row.line()
    again = await measured(case.work, True)
    assert again.numbers() == on.numbers(), "the same each time"
    assert row.line().count("|") == HEAD[0].count("|")


async def test_a_model_of_a_provider_goes_through_the_same_cases(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The real SDK, with a server on loopback that answers anything with the same words."""
    server = ModelServer()
    monkeypatch.setenv("OPENAI_BASE_URL", f"{await server.start()}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert await main("openai/fake-model") == 0
    await server.close()
    first, *table = capsys.readouterr().out.splitlines()
    made = json.loads(first)["agent"]
    assert [one["mechanism"] for one in made] == list(NAMED)
    assert all("without" not in one and one["with"]["calls"] for one in made)
    assert len(table) == len(HEAD) + len(NAMED)
    assert {one.body["model"] for one in server.requests} == {"fake-model"}
