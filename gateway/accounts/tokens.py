"""The shapes of bot tokens, so that a token in the wrong setting is recognised."""

import re
from typing import Literal

from msgspec import Struct

Owner = Literal["a Slack bot", "a Slack app", "a Telegram bot", "a Discord bot"]
SHAPES: dict[Owner, str] = {
    "a Slack bot": r"xox[be][A-Za-z0-9.-]+",
    "a Slack app": r"xapp-[A-Za-z0-9-]+",
    "a Telegram bot": r"\d+:[A-Za-z0-9_-]+",
    "a Discord bot": r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+){2}",
}


class Token(Struct, frozen=True, kw_only=True):
    """A setting for a token of `owner`; `looks` describes its shape."""

    owner: Owner
    looks: str

    def __call__(self, text: str) -> str:
        """Return the checked text. The error shows nothing of it."""
        if re.fullmatch(SHAPES[self.owner], text):
            return text
        other = next((name for name, shape in SHAPES.items() if re.fullmatch(shape, text)), "")
        if other:
            raise ValueError(f"this is the token of {other}; that of {self.owner} {self.looks}.")
        raise ValueError(f"it {self.looks}; copy it again, without quotes or words around it.")
