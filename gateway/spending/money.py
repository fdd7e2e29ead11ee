"""Money for people. Vocabulary: imports nothing of ours."""

LEAST = 0.0001


def dollars(amount: float) -> str:
    """`$4.20`, `$0.10`, `$0.0123`, `<$0.0001`."""
    if 0 < amount < LEAST:
        return f"<${LEAST}"
    whole, _, digits = f"{amount:.{2 if amount >= 1 else 4}f}".partition(".")
    return f"${whole}.{digits.rstrip('0').ljust(2, '0')}"
