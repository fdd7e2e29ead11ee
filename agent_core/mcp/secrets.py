"""Secrets given to a server, which must not come back from it: keys, tokens, passwords."""

import base64
import binascii
import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, unquote, urlsplit

from agent_core.guardrails.redaction import Redactions
from agent_core.guardrails.secret_spellings import spell_secret

HIDDEN = "***"
MIN_SECRET = 6
"""Minimum characters of a secret; shorter values occur in any text by chance."""
MIN_RANDOM = 12
"""Minimum characters of a value that counts as secret by its looks alone."""
_NAMED = re.compile(r"key|token|secret|pass|pwd|auth|cred|cookie|session|signature", re.IGNORECASE)
_KINDS = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]"))


def find_secrets(values: Iterator[tuple[str, str]], url: str) -> tuple[str, ...]:
    """Return the secrets among named `values` (an environment, headers) and in `url`, in all
    encodings in which servers repeat them, longest first."""
    found = {form for name, value in values for form in _find_in_value(name, value)}
    found |= {form for one in _find_in_url(url) for form in spell_secret(one)}
    return tuple(sorted((one for one in found if len(one) >= MIN_SECRET), key=len, reverse=True))


def make_redactions(secrets: tuple[str, ...]) -> Redactions:
    """Make redactions that replace each by `***`."""
    return Redactions(dict.fromkeys(secrets, HIDDEN))


def _find_in_value(name: str, value: str) -> Iterator[str]:
    """Yield the value, and what follows a scheme in it, as in `Bearer abc`; nothing for plain
    settings."""
    parts = (value, *value.split()[1:])
    if _NAMED.search(name) or any(map(_looks_random, parts)):
        for part in parts:
            yield from spell_secret(part)
    if value.partition(" ")[0].lower() == "basic":
        yield from _read_basic(value.partition(" ")[2])


def _read_basic(coded: str) -> Iterator[str]:
    """The login of HTTP's basic authentication, and the password alone."""
    try:
        login = base64.b64decode(coded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return
    yield login
    yield login.partition(":")[2]


def _find_in_url(url: str) -> Iterator[str]:
    """The URL's password, and the values of its query and path that look like keys."""
    try:
        parts = urlsplit(url)
        password = unquote(parts.password or "")
    except ValueError:
        return
    yield password
    for name, value in parse_qsl(parts.query):
        if _NAMED.search(name) or _looks_random(value):
            yield value
    yield from filter(_looks_random, parts.path.split("/"))


def _looks_random(value: str) -> bool:
    """Long, of one piece, and of two kinds of characters at least: no word, path or address."""
    if len(value) < MIN_RANDOM or re.search(r"[\s/]", value):
        return False
    return sum(kind.search(value) is not None for kind in _KINDS) >= 2
