"""Reads TOML that people write, in all its forms of not being TOML."""

import re
import tomllib
from typing import Any

MAX_PARTS = 100
"""Parts of a dotted key: the time that a parser takes for one is the square of their number."""
_PART = r"(?>[\w-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*+"
_DOTTED = re.compile(rf"(?<![\w-])(?:{_PART}\.[ \t]*+)++")


def parse_toml(text: str) -> dict[str, Any]:
    """The values of `text`. Raises TOMLDecodeError, and no other error. Takes time by the length of
    the text."""
    for found in _DOTTED.finditer(text):
        if found[0].count(".") > MAX_PARTS and len(re.findall(_PART, found[0])) > MAX_PARTS:
            line = text.count("\n", 0, found.start()) + 1
            why = f"a name has more than {MAX_PARTS} parts (at line {line}, column 1)"
            raise tomllib.TOMLDecodeError(why)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError("it is nested too deep") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # the one thing that it passes on as it is
        raise tomllib.TOMLDecodeError("a number has too many digits") from None
