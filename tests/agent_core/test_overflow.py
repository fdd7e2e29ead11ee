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


@pytest.mark.parametrize(
    ("words", "held"),
    [
        ("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum "
         "context length", 32768),
        ("This model's maximum prompt length is 131072 but the request contains 150000 tokens.",
         131072),
        ("Range of input length should be [1, 129024]", 129024),
        ("Prompt exceeds max length", 0),
        ("too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000",
         4081),
        ("Input validation error: `inputs` must have less than 4096 tokens. Given: 5000", 4096),
        ("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 "
         "`inputs` tokens and 512 `max_new_tokens`", 8193),
    ],
)  # fmt: skip
def test_words_that_say_it_all_are_known(words: str, held: int) -> None:
    """Of Mistral, xAI, Alibaba, Zhipu, Cohere, TGI and Together."""
    assert read_overflow({"error": {"message": words, "code": "1"}}, 422) == held
    assert read_overflow({"message": words}, 429) is None


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
