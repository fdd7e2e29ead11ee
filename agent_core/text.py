"""Cleans text from outside for every store, platform and model; escapes names of files; reads
numbers; compiles long patterns when they are used.

Removed are surrogates, which no JSON and no UTF-8 takes, control characters except tab and line
end, which stores and platforms refuse and a terminal obeys, and the noncharacters U+FDD0 to U+FDEF,
which Unicode reserves for a program's own marks. Text is cleaned where it enters; later code may
rely on it.
"""

import json
import re
import sys
import unicodedata
from functools import cached_property
from typing import TypeVar, cast

import msgspec
from msgspec import Struct

from agent_core.phrases import Phrase

V = TypeVar("V")
REPLACEMENT = "\ufffd"
MAX_NAME = 120
"""Bytes of the name that a file from outside gets."""
MAX_DIGITS = 18
"""Digits of a number that is read: Python refuses to convert some thousands of them."""

_UNCLEAN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef]|\r(?!\n)")
_ESCAPED = re.compile(r"\\(?:[bfr]|u(?:00[01]|007[fF]|00[89]|[dD][89a-fA-F]|[fF][dD][dDeE]))")
"""Matches the JSON escapes of cleaned characters; a backslash before one makes it something
else."""
_JOINERS = "\u200c\u200d"
_STRUCTURE = re.compile(r'\\.|["\[\]{}]', re.DOTALL)
MAX_DEPTH = 100
"""Levels of JSON."""
_ESCAPE = re.compile(
    r"\\(?:\\|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))",
)


def clean(text: str) -> str:
    """Remove what stores and platforms refuse; a clean text is returned as it is."""
    if text.isascii() and text.isprintable():
        return text
    return _UNCLEAN.sub(_replacement, text)


def is_clean(text: str) -> bool:
    """True if `clean` would change nothing."""
    return _UNCLEAN.search(text) is None


def _replacement(match: re.Match[str]) -> str:
    if match[0] == "\r":
        return "\n"
    return "" if "\ufdd0" <= match[0] <= "\ufdef" else REPLACEMENT  # combining marks are no letters


def clean_json(text: str) -> str:
    """Clean the strings in JSON `text`, also where they are written by escapes."""
    text = clean(text)
    if not _ESCAPED.search(text):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    cleaned = clean_values(value)
    return text if cleaned == value else json.dumps(cleaned, ensure_ascii=False)


def is_deep(text: str) -> bool:
    """Return True for JSON that is nested too deeply for later readers. Takes time by the length
    alone, and also works for text that is no JSON."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth, quoted = 0, False
    for found in _STRUCTURE.finditer(text):
        if found[0] == '"':
            quoted = not quoted
        elif not quoted:
            depth += 1 if found[0] in "[{" else -1 if found[0] in "]}" else 0
            if depth > MAX_DEPTH:
                return True
    return False


def clean_values(value: V) -> V:
    """Clean each text in `value`, a struct or JSON value, to any depth; itself if it is clean. JSON
    stored as bytes is left."""
    made: object
    match value:
        case str():
            made = clean(value)
        case Struct():
            fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
            new = {name: now for name, was in fields if (now := clean_values(was)) is not was}
            made = msgspec.structs.replace(value, **new) if new else value
        case Phrase(key=key, fields=fields):
            now = clean_values(fields)
            made = value if now is fields else Phrase(key=key, fields=now)
        case dict():
            known = {clean_values(key): clean_values(one) for key, one in value.items()}
            same = all(now is was for now, was in zip(known.values(), value.values(), strict=False))
            made = value if same and known.keys() == value.keys() else known
        case list() | tuple():
            items = [clean_values(one) for one in value]
            same = all(now is was for now, was in zip(items, value, strict=True))
            made = value if same else type(value)(items)
        case _:
            made = value
    return cast("V", made)


def file_name(name: str) -> str:
    """`name` as one that can be shown and written anywhere: without folders, invisible characters
    and leading dots, and short; its ending stays."""
    last = re.split(r"[/\\]", name)[-1]
    plain = "".join(char for char in last if char.isprintable() and not _is_hidden(char))
    plain = re.sub(r"\s+", " ", plain).strip(" .")
    stem, dot, ending = plain.rpartition(".")
    if not stem or len(ending.encode()) > 20:
        stem, dot, ending = plain, "", ""
    room = MAX_NAME - len(ending.encode()) - 1
    while len(stem.encode()) > room:
        stem = stem[:-1]
    return f"{stem}{dot}{ending}" or "file"


def drop_hidden(text: str) -> str:
    """`text` without signs that are not seen and may reorder it; those that join letters stay."""
    if text.isascii():
        return text
    return "".join(one for one in text if one in _JOINERS or unicodedata.category(one) != "Cf")


def parse_number(text: str) -> int | None:
    """Return the whole number of at most MAX_DIGITS decimal digits; None for any other text."""
    return int(text) if text.isdecimal() and len(text) <= MAX_DIGITS else None


def escape_name(name: str) -> str:
    r"""Escape a path for display: invisible or undecodable characters become \xE9 or \u202E, so
    that the shown form can be opened (`unescape_name`)."""
    if not any(map(_is_hidden, name)) and not _ESCAPE.search(name):
        return name
    return "".join(map(_escape, name))


def unescape_name(name: str) -> str:
    """The path that `escape_name` shows so; any other one as it is."""
    return _ESCAPE.sub(_unescape, name) if "\\" in name else name


def _is_hidden(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escape(char: str) -> str:
    code = ord(char)
    if char == "\\":
        return "\\\\"
    if not _is_hidden(char):
        return char
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8, as in names of the operating system
        return f"\\x{code - 0xDC00:02X}"
    if code < 0x80:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def _unescape(match: re.Match[str]) -> str:
    """Undo one escape of `escape_name`, and nothing else: it offers no other way to write a slash
    or a letter."""
    if match[0] == "\\\\":
        return "\\"
    if match[1]:
        byte = int(match[1], 16)
        char = chr(byte if byte < 0x80 else 0xDC00 + byte)
    else:
        code = int(match[2] or match[3], 16)
        char = chr(code) if code < 0x110000 else ""
    own = bool(char) and char != "\0" and not 0xD800 <= ord(char) < 0xDC80
    return char if own and _is_hidden(char) else match[0]


class LatePattern:
    """`re.compile(pattern)`, compiled at the first match: a long one takes milliseconds, which a
    start, or a command of the command line, that never needs it would pay."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    @cached_property
    def expression(self) -> re.Pattern[str]:
        """The compiled one."""
        return re.compile(self.pattern)

    def match(self, text: str, pos: int = 0) -> re.Match[str] | None:
        """See `re.Pattern`."""
        return self.expression.match(text, pos)

    def fullmatch(self, text: str, pos: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """See `re.Pattern`."""
        return self.expression.fullmatch(text, pos, end)

    def search(self, text: str, pos: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """See `re.Pattern`."""
        return self.expression.search(text, pos, end)
