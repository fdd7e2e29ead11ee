"""Reads TOML that people write, in all its forms of not being TOML."""

import tomllib
from typing import Any


def parse_toml(text: str) -> dict[str, Any]:
    """The values of `text`. Raises TOMLDecodeError, and no other error."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError("it is nested too deep") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # the one thing that it passes on as it is
        raise tomllib.TOMLDecodeError("a number has too many digits") from None
