"""Isolates bidirectional words within the gateway's sentences. Pure; imports nothing of ours.

A name in Hebrew or Arabic would reorder the text around it: `Approved by …, 12:05` would be read in
another order than it was written. Unicode's isolates prevent that on every platform. Other
direction marks, and incomplete isolates, are shown as codes.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

OPENS, CLOSES = "\u2068", "\u2069"
"""FIRST STRONG ISOLATE and POP DIRECTIONAL ISOLATE."""
_TURNING = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc\U00010800-\U00010fff"
    "\U0001e800-\U0001efff]"
)
_CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_ISOLATE = re.compile(f"{OPENS}[^\n\u202a-\u202e\u2066-\u2069]*{CLOSES}")


def isolate(text: str) -> str:
    """`text` kept to itself if it has writing from right to left. A text of several lines stays
    as it is: each line is a paragraph, which has its own direction."""
    if text.isascii() or "\n" in text:
        return text
    if _CONTROLS.search(text):
        text = _expose(text)
    if not _TURNING.search(_ISOLATE.sub("", text)):
        return text
    return f"{OPENS}{text.replace(OPENS, '').replace(CLOSES, '')}{CLOSES}"


def find_isolates(text: str) -> Iterator[int]:
    """Yield the positions of complete isolates around right-to-left text, which reorder nothing
    inside or outside of them."""
    for found in _ISOLATE.finditer(text):
        if _TURNING.search(found.group()):
            yield found.start()
            yield found.end() - 1


@lru_cache(4096)
def write_code(sign: str) -> str:
    """The sign as JSON writes it."""
    units = sign.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _expose(text: str) -> str:
    whole = frozenset(find_isolates(text))
    return _CONTROLS.sub(
        lambda found: found[0] if found.start() in whole else write_code(found[0]), text
    )
