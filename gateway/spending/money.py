"""Money for people. Vocabulary: imports nothing of ours."""


def dollars(amount: float) -> str:
    """`$0.0123`, `$4.20`."""
    return f"${amount:.2f}" if amount >= 1 or not amount else f"${amount:.4f}"
