"""Money as people read it."""

import pytest

from gateway.texts.money import dollars


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (0, "$0.00"), (0.00001, "<$0.0001"), (0.0001, "$0.0001"), (0.01, "$0.01"), (0.1, "$0.10"),
        (0.0123, "$0.0123"), (0.99996, "$1.00"), (1, "$1.00"), (4.256, "$4.26"), (1234.5, "$1234.50"),
    ],
)  # fmt: skip
def test_as_many_digits_as_say_something(amount: float, said: str) -> None:
    assert dollars(amount) == said
