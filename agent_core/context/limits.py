"""Limits on the length of what a model sees."""

from msgspec import Struct

SMALL_WINDOW = 8_192
"""Tokens of a window up to which a request describes fewer tools, in fewer words."""
MAX_OBSERVE = 10_000
"""Characters of a result that the model sees; the whole is kept as a file."""
MIN_OBSERVE = 2_000


def limit_observed(window: int) -> int:
    """Return the characters of one result that a model with a window of so many tokens sees: about
    an eighth of a small window."""
    return max(MIN_OBSERVE, min(MAX_OBSERVE, window // 2))


def limit_aside(observed: int) -> int | None:
    """Tokens of a plan or a judgement by a model that sees so many characters of a result: a
    quarter of a small window, for small models go on until it is full. None: its own limit."""
    return observed // 2 if observed * 2 <= SMALL_WINDOW else None


class ContextLimits(Struct, frozen=True, kw_only=True):
    """Tokens that a request may have: beyond `limit` (0: never) older messages are summarised,
    beyond `most` (0: never) they are left out where they are not. `keep`: messages that stay;
    `by`: the model that summarises."""

    limit: int = 0
    most: int = 0
    keep: int = 10
    by: str = "flash"
