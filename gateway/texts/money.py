"""Money for people. Vocabulary: imports nothing of ours but the texts."""

from gateway.texts import say

MIN_SHOWN = 0.0001
"""Dollars under which a sum is shown as less than that."""


def dollars(amount: float) -> str:
    """`$4.20`, `$0.10`, `$0.0123`, `<$0.0001`."""
    if 0 < amount < MIN_SHOWN:
        return f"<${MIN_SHOWN}"
    whole, _, digits = f"{amount:.{2 if amount >= 1 else 4}f}".partition(".")
    return f"${whole}.{digits.rstrip('0').ljust(2, '0')}"


def describe_cost(cost: float, unpriced: int, language: str) -> str:
    """Return `$4.20`, `price unknown for 3 calls`, or both, if `unpriced` calls have no known
    price."""
    if not unpriced:
        return dollars(cost)
    unknown = say("usage_unpriced", language, n=unpriced)
    return f"{dollars(cost)} + {unknown}" if cost else unknown
