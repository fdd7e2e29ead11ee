"""Cleans inbound text once for all platforms, before it is stored."""

import unicodedata
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from agent_core.text import clean
from gateway.messages import GatewaySaid, Inbound

IDS = frozenset(
    ("account", "album", "channel", "event", "groups", "handle", "id", "key", "message", "person")
    + ("platform", "press", "question", "ref", "thread", "token", "workspace")
)
"""Fields that name something: they are kept as they are, as far as a store takes them."""
LINES = frozenset(("name", "author"))
"""Fields that are one line: the names of people and files."""
MAX_LINE, HEAD, TAIL = 255, 200, 54
"""Characters of a name: a file system takes no longer ones. Of such the head and tail are kept."""
S = TypeVar("S", bound=Struct)


def clean_inbound(inbound: Inbound) -> Inbound:
    """Return `inbound` with clean texts and names; itself if nothing changes. The gateway's own
    messages keep the marks of their commands."""
    return inbound if isinstance(inbound, GatewaySaid) else _struct(inbound)


def _struct(value: S) -> S:
    changed = {}
    for field in value.__struct_fields__:
        before = getattr(value, field)
        after = _value(field, before)
        if after != before:
            changed[field] = after
    return replace(value, **changed) if changed else value


def _value(field: str, value: object) -> object:
    match value:
        case str() if field in IDS:
            return value if value.isascii() else _escape_surrogates(value)
        case str() if field in LINES:
            return _line(value)
        case str():
            return clean(value)
        case Struct():
            return _struct(value)
        case tuple():
            items = tuple(_value(field, one) for one in value)
            same = all(now is was for now, was in zip(items, value, strict=True))
            return value if same else items
        case _:
            return value


def _escape_surrogates(name: str) -> str:
    """Escape surrogates reversibly, so that different names stay different."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return name.encode("utf-8", "backslashreplace").decode()
    return name


def _line(name: str) -> str:
    """Remove line ends, bidirectional and invisible characters, and cut the name so that a card has
    room for the rest."""
    if not (name.isascii() and name.isprintable()):
        plain = "".join(char for char in clean(name) if char == "\u200d" or not _turns(char))
        name = " ".join(plain.split())
    return name if len(name) <= MAX_LINE else f"{name[:HEAD]}…{name[-TAIL:]}"


def _turns(char: str) -> bool:
    return unicodedata.category(char) == "Cf"
