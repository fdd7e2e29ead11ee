"""What a provider says of a request that is too long is known for what it is, and nothing else."""

import json

import pytest

from agent_core.models.overflow import read_overflow
from tests.fakes.model_steps import Events, Fail
from tests.fakes.overflows import HELD, OTHERS, OVERFLOWS, Overflow


def bodies(step: object) -> list[tuple[object, int]]:
    """The errors of a form, with their status (0 in a stream)."""
    step = step({"stream": False}) if callable(step) else step
    if isinstance(step, Fail):
        return [(step.body, step.status)]
    assert isinstance(step, Events)
    events = [json.loads(line) for line in step.lines]
    errors = (one.get("error") or one.get("response", {}).get("error") for one in events)
    return [(one, 0) for one in errors if one]


@pytest.mark.parametrize("form", OVERFLOWS.values(), ids=OVERFLOWS)
@pytest.mark.parametrize("wrap", [lambda body: body, json.dumps, lambda body: {"detail": body}])
def test_each_form_is_known_and_says_what_is_held(form: Overflow, wrap: object) -> None:
    for body, status in bodies(form.step):
        assert read_overflow(wrap(body), status) == (HELD if form.told else 0)


@pytest.mark.parametrize("form", OTHERS.values(), ids=OTHERS)
def test_other_errors_are_not_taken_for_it(form: Fail) -> None:
    assert read_overflow(form.body, form.status) is None


@pytest.mark.parametrize("error", [None, "", 7, [], {}, {"error": {"n_ctx": True}}, [[["n_ctx"]]]])
def test_any_form_of_error_can_be_read(error: object) -> None:
    assert read_overflow(error) is None


def test_deep_and_long_errors_cost_little() -> None:
    deep: object = "context length exceeded"
    for _ in range(500):
        deep = {"error": deep}
    assert read_overflow(deep) in (None, 0)
    assert read_overflow("n_ctx " * 1_000_000) is None
