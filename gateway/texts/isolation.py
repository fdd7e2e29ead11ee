"""Words of either direction within one of our sentences. Pure; imports nothing of ours.

A name in Hebrew or Arabic turns round what stands beside it: `Approved by …, 12:05` would be read
in another order than it was written. Unicode's isolates keep it to itself on every platform.
"""

import re

OPENS, CLOSES = "\u2068", "\u2069"
"""FIRST STRONG ISOLATE and POP DIRECTIONAL ISOLATE."""
_TURNS = re.compile(
    "[\u0590-\u08ff\u200f\ufb1d-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc\U00010800-\U00010fff"
    "\U0001e800-\U0001efff]"
)


def isolate(text: str) -> str:
    """`text` kept to itself if it has writing from right to left. A text of several lines stays
    as it is: each line is a paragraph, which has its own direction."""
    if text.isascii() or "\n" in text or not _TURNS.search(text):
        return text
    return f"{OPENS}{text}{CLOSES}"
