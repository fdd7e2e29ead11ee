"""What model calls cost, in words: a price that nobody knows is said to be unknown."""

from gateway.store.spending.tally import Tally
from gateway.texts import say
from gateway.texts.money import dollars


def describe_cost(tally: Tally, language: str) -> str:
    """`$4.20`, `price unknown for 3`, or both."""
    if not tally.unpriced:
        return dollars(tally.cost)
    unknown = say("usage_unpriced", language, n=tally.unpriced)
    return unknown if tally.unpriced == tally.calls else f"{dollars(tally.cost)} + {unknown}"
