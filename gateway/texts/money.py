"""Money for people. Vocabulary: imports nothing of ours."""

MIN_SHOWN = 0.0001


def dollars(amount: float) -> str:
    """`$4.20`, `$0.10`, `$0.0123`, `<$0.0001`."""
    if 0 < amount < MIN_SHOWN:
        return f"<${MIN_SHOWN}"
    whole, _, digits = f"{amount:.{2 if amount >= 1 else 4}f}".partition(".")
    return f"${whole}.{digits.rstrip('0').ljust(2, '0')}"
