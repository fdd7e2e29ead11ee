"""How long what a model sees may become."""

from msgspec import Struct


class ContextLimits(Struct, frozen=True, kw_only=True):
    """Tokens that a request may have: beyond `limit` (0: never) older messages are summarised,
    beyond `most` (0: never) they are left out where they are not. `keep`: messages that stay;
    `by`: the model that summarises."""

    limit: int = 0
    most: int = 0
    keep: int = 10
    by: str = "flash"
