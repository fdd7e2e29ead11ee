"""The context of a message for the model: lines after the person's words.

Not in the system prompt, for the reason given in `agent_core/memory/recall.py`: what changes is
appended. Each message tells the time; the rest is told where it differs from what was told last,
and again once that is far back. The block is the last part of its message, after an empty line:
words that imitate one are not taken for it.
"""

import re
from collections.abc import Iterable, Set
from datetime import datetime
from itertools import islice
from zoneinfo import ZoneInfo

from msgspec import Struct

from agent_core.messages import Message, Text

MAX_LOOKED_AT = 40
"""People's messages after which everything is told again."""
MAX_LINE = 300
_NOW = "Now"
_KINDS = ("Person", "Place", "Sandbox")
_BLOCK = re.compile(rf"\[{_NOW}: [^\n]*\](?:\n\[(?:{'|'.join(_KINDS)}): [^\n]*\])*")
_LINE = re.compile(r"\[(\w+): ([^\n]*)\]")


class Surroundings(Struct, frozen=True, kw_only=True):
    """The context of one message, in words; "" is not told. `now`: as `describe_time` returns
    it."""

    now: str
    person: str = ""
    place: str = ""
    sandbox: str = ""


def describe_time(at: float, zone: str) -> str:
    """The moment `at` (seconds since 1970) in the IANA zone `zone`. Raises as ZoneInfo does."""
    local = datetime.fromtimestamp(at, ZoneInfo(zone))
    offset = "" if zone == "UTC" else f" (UTC{local:%z})"
    return f"{local:%A %Y-%m-%d %H:%M} {zone}{offset}"


def render_surroundings(around: Surroundings, newest: Iterable[Message]) -> str:
    """Render the lines to append to the next message, where the model sees `newest`, the last one
    first."""
    told = zip(_KINDS, map(_flatten, (around.person, around.place, around.sandbox)), strict=True)
    facts = {kind: fact for kind, fact in told if fact}
    known = _read_last(newest, facts.keys())
    lines = [f"[{kind}: {fact}]" for kind, fact in facts.items() if known.get(kind) != fact]
    return "\n".join((f"[{_NOW}: {_flatten(around.now)}]", *lines))


def strip_surroundings(text: str) -> str:
    """The words of a message without the block at its end."""
    words, block = _split(text)
    return words if block else text


def _split(text: str) -> tuple[str, str]:
    """Split a message into words and block; "" if there is none."""
    start = text.rfind(f"[{_NOW}: ")
    if start < 0 or not (start == 0 or text.endswith("\n\n", 0, start)):
        return text, ""
    block = _BLOCK.fullmatch(text, start)
    return (text[:start].rstrip("\n"), block[0]) if block else (text, "")


def _read_last(newest: Iterable[Message], kinds: Set[str]) -> dict[str, str]:
    """Return the latest value of each of the kinds, as far as recent."""
    asked = (one for one in newest if one.role == "user")
    known: dict[str, str] = {}
    for message in islice(asked, MAX_LOOKED_AT):
        for part in message.parts:
            if isinstance(part, Text) and not part.condensed and _tells_more(part.text):
                told = dict(_LINE.findall(_split(part.text)[1]))
                known = told | known
        if known.keys() >= kinds:
            break
    return known


def _tells_more(text: str) -> bool:
    """Return True if its block, if it is one, tells more than the time."""
    start = text.rfind(f"[{_NOW}: ")
    return start >= 0 and text.find("\n", start) >= 0


def _flatten(fact: str) -> str:
    """Write a fact in one line without closing brackets of its own."""
    plain = fact.replace("[", "(").replace("]", ")")
    return " ".join(plain.split())[:MAX_LINE]
