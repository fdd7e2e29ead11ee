"""Settings: each is declared once, beside its code, with a name, a default, a kind and a help.

The list of settings, their parsing and checks, their secrecy, and the page of the documentation all
follow from the declarations. Imports little: a gateway reads its settings before its first poll.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct

T = TypeVar("T")
V_co = TypeVar("V_co", covariant=True)

Env: TypeAlias = Mapping[str, str]
"""Values of settings, by name."""
Secrecy = Literal["nothing", "all", "password", "api_keys"]
"""The secret part of a value: all of it, the password of a URL, or each `"api_key"` in JSON."""

_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""Matches a control character, and a byte of the environment that is not UTF-8."""
_API_KEYS = re.compile(r'"api_key"\s*:\s*("[^"]*"|\[[^\]]*\])')


class SettingsError(Exception):
    """A setting cannot work; the text names it, its value (never a secret's, nor a password in an
    address, nor what looks like a key or is random: one may be set in another's place) and the
    mend."""

    def __init__(self, setting: str, value: str, mend: str) -> None:
        # imported here: only needed after an error
        from agent_core.guardrails.secret_shapes import hide_shapes

        value, mend = (hide_shapes(hide_passwords(text)) for text in (value, mend))
        named, value, mend = (_shorten(hide_tokens(text)) for text in (setting, value, mend))
        super().__init__(f"{named}={value}: {mend}" if value else f"{named}: {mend}")
        self.setting = setting


MAX_SHOWN = 1_000
"""Characters of a value, and of a mend, that an error shows."""
_PART = re.compile(r"[^\s,\"']+")


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def hide_passwords(text: str) -> str:
    """Replace passwords in addresses, valid or not: `a://[secret]@c` for `a://b:d@c`."""
    return _PART.sub(_hide_password, text)


def _hide_password(part: re.Match[str]) -> str:
    begin = part[0].find("://") + 3 if "://" in part[0] else 0
    user, at, place = part[0][begin:].rpartition("@")
    is_path = "/" in user and ":" not in user  # as in `a://c/@d`
    is_group = not begin and user.endswith(":")  # as in `slack:@S0OPS`
    if not user or is_path or is_group or (not begin and ":" not in user):
        return part[0]
    return f"{part[0][:begin]}[secret]{at}{place}"


_LONG = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_UNBROKEN = re.compile(r"[A-Za-z0-9+]{24}")
_CHANGE = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])")
MIN_CHANGES = 4


def hide_tokens(text: str) -> str:
    """Replace what looks random by its length, such as a key without a known shape: 24 letters and
    digits on end, or 16 in which their kinds change often."""
    return _LONG.sub(_hide_token, text)


def _hide_token(found: re.Match[str]) -> str:
    changes = len(_CHANGE.findall(found[0]))
    often = changes >= MIN_CHANGES and changes * 6 >= len(found[0])
    return f"[{len(found[0])} characters]" if often or _UNBROKEN.search(found[0]) else found[0]


class WrongValue(ValueError):
    """A value that a kind refuses. `part`: the wrong part, shown in the error; `place`: its
    position in the value, as in `[0].name`."""

    def __init__(self, mend: str, part: str = "", place: str = "") -> None:
        super().__init__(mend)
        self.part = part
        self.place = place


class Setting(Struct, Generic[V_co], frozen=True):
    """One setting. `kind` parses a text that is not empty, and raises ValueError with the mend.
    `help` and `default_text` are Markdown for the documentation; the latter where the default's
    value does not tell it."""

    name: str
    default: V_co
    kind: Callable[[str], V_co]
    help: str
    secret: Secrecy = "nothing"
    default_text: str = ""

    def read(self, env: Env) -> V_co:
        """The value in `env`, else the default; raises SettingsError."""
        text = self.text(env)
        return self.parse(text, self.kind) if text else self.default

    def text(self, env: Env) -> str:
        """Return the text as set; "" if nothing is. SettingsError for bytes that are no text."""
        text = env.get(self.name, "").strip()
        if found := _UNREADABLE.search(text):
            sign = "it is not UTF-8" if found[0] > "\x7f" else "a control character is in it"
            raise self.error(text, f"{sign} (at character {found.start() + 1}); write it again.")
        return text

    def parse(self, text: str, kind: Callable[[str], T]) -> T:
        """The value that `kind` makes of a text of this setting; raises SettingsError."""
        try:
            return kind(text)
        except WrongValue as error:
            raise SettingsError(f"{self.name}{error.place}", error.part, str(error)) from None
        except ValueError as error:
            raise self.error(text, str(error)) from None

    def error(self, value: str, mend: str) -> SettingsError:
        """Make an error that shows only the public part of `value`."""
        shown = {"nothing": value, "password": value.rpartition("@")[2]}.get(self.secret, "")
        return SettingsError(self.name, shown, mend)

    def find_secrets(self, env: Env) -> frozenset[str]:
        """Return the parts of the value in `env` that no log may show."""
        text = self.text(env)
        found: Iterable[str] = ()
        match self.secret:
            case "all":
                found = (text, *(piece.strip() for piece in text.split(",")))
            case "password":
                found = (_find_password(text),)
            case "api_keys":
                found = (
                    key
                    for keys in _API_KEYS.findall(text)
                    for key in re.split(r'[\[\]",\s]+', keys)
                )
            case "nothing":
                pass
        return frozenset(filter(None, found))


SettingTables: TypeAlias = Mapping[str, tuple[Setting[object], ...]]
"""Settings by their table in the documentation."""


def merge_tables(*owners: SettingTables) -> SettingTables:
    """The tables of several owners, in their order."""
    names = dict.fromkeys(name for tables in owners for name in tables)
    return {
        name: tuple(setting for tables in owners for setting in tables.get(name, ()))
        for name in names
    }


def _find_password(url: str) -> str:
    try:
        return urlsplit(url).password or ""
    except ValueError:
        return ""
