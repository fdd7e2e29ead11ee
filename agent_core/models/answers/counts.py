"""Reads the counts of an answer: a mistake in them, which are beside it, does not spoil it."""

MAX_COUNT = 1_000_000_000


def read_count(usage: object, *path: str) -> int:
    """Return the number at `path`, 0 if there is none that can be meant."""
    for name in path:
        usage = usage.get(name) if isinstance(usage, dict) else None
    return clean_count(usage)


def clean_count(given: object) -> int:
    """Return the number that a server gives as a count, 0 if it cannot be meant."""
    try:
        count = int(float(given)) if isinstance(given, int | float | str) else 0
    except (ValueError, OverflowError):
        return 0
    return count if 0 < count <= MAX_COUNT else 0
