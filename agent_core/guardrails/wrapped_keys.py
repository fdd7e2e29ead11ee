"""Finds private keys whose lines begin or end with something else: numbers of lines, marks of a
comparison, a quotation or a comment, quotes of a program, the name of a file or a service.

Only the characters of the key are found, never what is around them: a card shows all of a command.
"""

import re

MAX_LINES = 400
MAX_LINE = 4_000
"""Characters of a line that are searched."""
MAX_GAP = 5
"""Lines in a row without a part of the key: its head, and an empty line."""
_BEGINS = re.compile(
    r"-----BEGIN (?:[A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)-----"
)
_BEGIN, _END = "-----BEGIN", "-----END"
_SIGN = r"[A-Za-z0-9+/=]"
_DRAWN = r"(?=[A-Za-z+/=]{0,80}\d)(?=[a-z\d+/=]{0,80}[A-Z])(?=[A-Z\d+/=]{0,80}[a-z])"
_PART = re.compile(rf"(?<!{_SIGN}){_DRAWN}{_SIGN}{{40,}}")
_LAST = re.compile(
    rf"(?<!{_SIGN}){_DRAWN}{_SIGN}{{4,76}}(?=[^A-Za-z0-9+/=\n]{{0,12}}(?:n[\"' +,]{{0,8}})?$)",
    re.MULTILINE,
)
"""The end of a key, shorter than a line."""


ENCODED = ("LS0tLS1CRUdJTi", "eyJhdXRocyI6")
"""Beginnings in base64 of a key and of Docker's passwords, which may be longer than tokens are."""
_IN_BASE64 = re.compile(r"[\w+/-]*={0,2}", re.ASCII)


def find_encoded(text: str) -> int:
    """Return where such a beginning stands that goes on to the end of `text`, else its length."""
    for sign in ENCODED:
        begin = text.rfind(sign)
        if begin >= 0 and _IN_BASE64.fullmatch(text, begin):
            return begin
    return len(text)


def find_wrapped_keys(text: str) -> list[tuple[int, int]]:
    """(start, end) of each part of a key, in order."""
    found: list[tuple[int, int]] = []
    for begin in _BEGINS.finditer(text):
        found += _read_lines(text, begin.end())[0]
    return found


def is_key_open(text: str, begin: int) -> bool:
    """Return True if more text could continue the key that begins there."""
    found = _BEGINS.match(text, begin)
    return found is not None and _read_lines(text, found.end())[1]


def find_key_end(text: str, begin: int) -> int:
    """Return where the line of a private key's end begins, -1 if the text has none of it."""
    found = _BEGINS.match(text, begin)
    return text.find(_END, found.end(), found.end() + MAX_LINES * 100) if found is not None else -1


def _read_lines(text: str, at: int) -> tuple[list[tuple[int, int]], bool]:
    """The parts of a key, and whether the text ends before the key does."""
    parts: list[tuple[int, int]] = []
    gap, rest = 0, at  # lines without a part, and where they begin
    for _ in range(MAX_LINES):
        start = text.find("\n", at) + 1
        if not start:
            return parts, True
        at = text.find("\n", start)
        end = at if at >= 0 else len(text)
        if text.find(_END, start, end) >= 0:
            parts += _find_rest(text, rest, start - 1) if parts and gap else []
            return parts, False
        if part := _PART.search(text, start, min(end, start + MAX_LINE)):
            parts.append(part.span())
            gap, rest = 0, end + 1
        else:
            gap += 1
        if gap > MAX_GAP or text.find(_BEGIN, start, end) >= 0:
            return parts, False
        if at < 0:
            return parts, True
    return parts, False


def _find_rest(text: str, start: int, end: int) -> list[tuple[int, int]]:
    return [found.span() for found in _LAST.finditer(text, start, end)]
