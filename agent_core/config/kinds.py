"""The kinds of settings: each makes a value of a text, or says by a ValueError how to mend it."""

import re
from collections.abc import Callable
from typing import Generic, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from agent_core.config.declaration import WrongValue

T = TypeVar("T")
C = TypeVar("C", bound=str)

MIN_SECRET = 16
"""Characters of a secret that the operator makes up."""
NO_WORDS: tuple[str, ...] = ()
SWITCH_WORDS = {
    **dict.fromkeys(("on", "true", "yes", "1"), True),
    **dict.fromkeys(("off", "false", "no", "0"), False),
}


def parse_switch(text: str) -> bool:
    """Parse on or off, in the words that all switches share."""
    if (known := SWITCH_WORDS.get(text.lower())) is None:
        raise ValueError("write on or off.")
    return known


class WholeNumber(Struct, frozen=True, kw_only=True):
    """A whole number within bounds."""

    least: int = 0
    most: int = 10**18
    mend: str = ""

    def __call__(self, text: str) -> int:
        """The number."""
        if not (text.isascii() and text.isdecimal() and self.least <= int(text) <= self.most):
            mend = f"write a whole number from {self.least} to {self.most}."
            raise ValueError(self.mend or mend)
        return int(text)


class Number(Struct, frozen=True, kw_only=True):
    """A number within bounds."""

    least: float
    most: float
    mend: str

    def __call__(self, text: str) -> float:
        """The number."""
        try:
            number = float(text)
        except ValueError:
            raise ValueError(self.mend) from None
        if not self.least <= number <= self.most:
            raise ValueError(self.mend)
        return number


class OrNever(Struct, Generic[T], frozen=True, kw_only=True):
    """`kind`, or the word `never`, which means the value `never`."""

    kind: Callable[[str], T]
    never: T

    def __call__(self, text: str) -> T:
        """The value of the kind, or that of the word."""
        return self.never if text.lower() == "never" else self.kind(text)


class Choice(Struct, Generic[C], frozen=True, kw_only=True):
    """One of `words`, ignoring case."""

    words: tuple[C, ...]
    mend: str = ""

    def __call__(self, text: str) -> C:
        """The word."""
        for word in self.words:
            if word == text.lower():
                return word
        raise ValueError(self.mend or f"use one of: {', '.join(self.words)}.")


class Matching(Struct, frozen=True, kw_only=True):
    """A text that the regular expression `pattern` matches as a whole."""

    pattern: str
    mend: str

    def __call__(self, text: str) -> str:
        """The text."""
        if not re.fullmatch(self.pattern, text):
            raise ValueError(self.mend)
        return text


class SharedSecret(Struct, frozen=True, kw_only=True):
    """A secret shared with others: long enough, and matching `pattern`."""

    pattern: str = r".+"
    mend: str = ""
    least: int = MIN_SECRET

    def __call__(self, text: str) -> str:
        """Return the checked text. The error shows nothing of it."""
        if len(text) < self.least:
            raise ValueError(
                f"it is shorter than {self.least} characters, so it can be guessed; "
                "set a long random text, such as `openssl rand -hex 32` prints."
            )
        if not re.fullmatch(self.pattern, text):
            raise ValueError(self.mend)
        return text


_BARE = re.compile(r"[\w.-]+(?::\d+)?(?:/\S*)?", re.ASCII)
"""An address that lacks its scheme."""


class Url(Struct, frozen=True, kw_only=True):
    """An address with a host, of one of two schemes: `scheme`, and the same with an s."""

    scheme: str = "http"

    def __call__(self, text: str) -> str:
        """The address."""
        if not is_url(text, self.scheme):
            article = "an" if self.scheme[0] in "aeho" else "a"
            whole = f"{self.scheme}://{text}"
            hint = (
                f", such as {whole}" if _BARE.fullmatch(text) and is_url(whole, self.scheme) else ""
            )
            raise ValueError(f"must be {article} {self.scheme} or {self.scheme}s URL{hint}.")
        return text


class ChatUrl(Struct, frozen=True, kw_only=True):
    """An address that chats take for a button: http or https, a host with a dot, no path."""

    example: str

    def __call__(self, text: str) -> str:
        """The address, without a slash at its end."""
        parts = urlsplit(Url()(text))
        if parts.path.strip("/") or parts.query or "." not in (parts.hostname or ""):
            raise ValueError(f"write an address of its own, such as {self.example}.")
        return text.rstrip("/")


class Json(Struct, Generic[T], frozen=True, kw_only=True):
    """JSON of the type `of`, as `example` shows."""

    of: type[T]
    example: str

    def __call__(self, text: str) -> T:
        """The value. Nothing of the text is in the error: it may hold secrets."""
        try:
            return msgspec.json.decode(text, type=self.of)
        except (msgspec.DecodeError, RecursionError) as error:
            raise WrongValue(f"write JSON such as {self.example} ({error}).") from None


def is_url(text: str, scheme: str = "http") -> bool:
    """The text is an address with a host, of this scheme or the same with an s."""
    if any(map(str.isspace, text)):
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme in (scheme, f"{scheme}s") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def parse_dollars(text: str) -> float:
    """An amount of money above 0, for a limit."""
    try:
        dollars = float(text)
    except ValueError:
        dollars = 0.0
    if not 0 < dollars < 1e9:
        raise ValueError("write US dollars, such as 2.50; leave it out for no limit.")
    return dollars


def split_commas(text: str) -> tuple[str, ...]:
    """A list with commas between the entries."""
    return tuple(filter(None, (entry.strip() for entry in text.split(","))))


def split_words(text: str) -> tuple[str, ...]:
    """A list with commas or spaces between the entries."""
    return tuple(filter(None, re.split(r"[,\s]+", text)))


def parse_key(text: str) -> str:
    """An API key."""
    if not (text.isascii() and text.isprintable() and " " not in text):
        raise ValueError("holds characters that no key has; copy it again.")
    return text


def parse_keys(text: str) -> tuple[str, ...]:
    """Parse one API key or several, separated by commas."""
    return tuple(map(parse_key, split_commas(text)))
