"""Code in what a model wrote."""

import re

_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n`]*\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)


def code_in(text: str) -> str:
    """The longest block of code in `text`, else all of it; ends with one line break."""
    blocks = [found[2] for found in _FENCE.finditer(text)]
    return (max(blocks, key=len) if blocks else text).strip("\n") + "\n"


def beside(text: str) -> str:
    """What stands around the blocks of code."""
    return re.sub(r"\n{3,}", "\n\n", _FENCE.sub("", text)).strip()
