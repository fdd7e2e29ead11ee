"""The fields of a server's form: a flat JSON schema, as the protocol limits it."""

import math
import re
from datetime import date, datetime
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from agent_core.mcp.secret_fields import asks_for_secret
from agent_core.phrases import Phrase, phrase
from agent_core.text import clean, drop_hidden

MAX_FIELDS = 20
MAX_OPTIONS = 50
MAX_LABEL = 60
MAX_ABOUT = 300
MAX_TEXT = 2_000
"""Characters of an answer."""
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_Value: TypeAlias = str | int | float | bool | list[str]
Kind = Literal["text", "number", "integer", "yes_no", "choice", "choices"]


class ElicitationRefused(Exception):
    """A request of a server that is not put to a person; the text says why."""


class FormField(Struct, frozen=True, kw_only=True):
    """One field. `options`: value and title; `least`, `most`: of a number, a text's length, or a
    list's; `expected`: the expected answer, for people."""

    name: str
    label: str
    kind: Kind
    required: bool
    expected: Phrase
    about: str = ""
    options: tuple[tuple[str, str], ...] = ()
    least: float | None = None
    most: float | None = None
    form: str = ""
    default: _Value | None = None


def read_form(schema: dict[str, object]) -> tuple[FormField, ...]:
    """Return the fields in order. Raises ElicitationRefused for a form that is not flat, or that
    asks for a secret."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        raise ElicitationRefused("it is no form")
    if len(properties) > MAX_FIELDS:
        raise ElicitationRefused(f"it has more than {MAX_FIELDS} fields")
    return tuple(
        _read_field(str(name), given, name in required) for name, given in properties.items()
    )


def _read_field(name: str, given: object, required: bool) -> FormField:
    if not isinstance(given, dict):
        raise ElicitationRefused("it is no form")
    label, about = _line(given.get("title") or name, MAX_LABEL), _line(given.get("description"))
    form = given.get("format")
    items = given.get("items")
    kind, options = _read_kind(given, items if isinstance(items, dict) else {})
    if form == "password" or (kind != "yes_no" and asks_for_secret(name, label, about)):
        raise ElicitationRefused("it asks for a secret, which no form may")
    least, most = {
        "text": ("minLength", "maxLength"),
        "choices": ("minItems", "maxItems"),
    }.get(kind, ("minimum", "maximum"))
    field = FormField(
        name=name,
        label=label,
        kind=kind,
        required=required,
        expected=phrase("elicit_text"),
        about=about,
        options=options,
        least=_number(given.get(least)),
        most=_number(given.get(most)),
        form=form if isinstance(form, str) else "",
    )
    default = _read_default(field, given.get("default"))
    return replace(field, default=default, expected=_say_expected(field))


def _read_kind(
    given: dict[str, object], items: dict[str, object]
) -> tuple[Kind, tuple[tuple[str, str], ...]]:
    match given.get("type"):
        case "boolean":
            return "yes_no", ()
        case "integer":
            return "integer", ()
        case "number":
            return "number", ()
        case "string" if "enum" in given or "oneOf" in given:
            return "choice", _read_options(given, "oneOf")
        case "string":
            return "text", ()
        case "array" if "enum" in items or "anyOf" in items:
            return "choices", _read_options(items, "anyOf")
        case _:
            raise ElicitationRefused("it has fields that are no texts, numbers or choices")


def _read_options(given: dict[str, object], titled: str) -> tuple[tuple[str, str], ...]:
    """Values with their titles, all different."""
    listed, names = given.get("enum"), given.get("enumNames")
    found: list[tuple[object, object]] = []
    if isinstance(listed, list):
        titles = names if isinstance(names, list) and len(names) == len(listed) else listed
        found = list(zip(listed, titles, strict=True))
    elif isinstance(many := given.get(titled), list):
        found = [
            (one.get("const"), one.get("title") or one.get("const"))
            for one in many
            if isinstance(one, dict)
        ]
    options: dict[str, str] = {}
    for value, title in found[:MAX_OPTIONS]:
        shown = _line(title, MAX_LABEL).lstrip("/") or "—"
        if isinstance(value, str):
            options.setdefault(shown if shown not in options else _line(value, MAX_LABEL), value)
    if not options or len(found) > MAX_OPTIONS:
        raise ElicitationRefused("it has a choice of nothing, or of too much")
    return tuple((value, title) for title, value in options.items())


def _read_default(field: FormField, given: object) -> _Value | None:
    """Return the proposal, which is sent if the person leaves the field out; None if it does not
    fit."""
    known = [value for value, _ in field.options]
    match given:
        case bool() if field.kind == "yes_no":
            return given
        case str() if field.kind == "choice" and given in known:
            return given
        case str() if field.kind == "text" and _fits_text(field, given):
            return given
        case bool():
            return None
        case int() if field.kind in ("number", "integer") and _fits(field, given):
            return given
        case float() if field.kind == "number" and math.isfinite(given) and _fits(field, given):
            return given
        case list() if field.kind == "choices" and all(one in known for one in given):
            return [str(one) for one in given] if _fits(field, len(given)) else None
        case _:
            return None


def _say_expected(field: FormField) -> Phrase:
    ends = [f"{one:g}" if one is not None else "" for one in (field.least, field.most)]
    limits = f" ({ends[0]}…{ends[1]})" if any(ends) else ""
    match field.kind, field.form:
        case "integer", _:
            return phrase("elicit_integer", limits=limits)
        case "number", _:
            return phrase("elicit_number", limits=limits)
        case "choice", _:
            return phrase("elicit_one")
        case "choices", _:
            return phrase("elicit_some", options=", ".join(title for _, title in field.options))
        case _, "email":
            return phrase("elicit_email")
        case _, "uri":
            return phrase("elicit_uri")
        case _, "date":
            return phrase("elicit_date")
        case _, "date-time":
            return phrase("elicit_time")
        case _:
            return phrase("elicit_text")


def read_value(field: FormField, said: str) -> _Value | None:
    """Parse a person's answer; None if it does not fit."""
    match field.kind:
        case "integer" | "number":
            return _read_number(field, said)
        case "choice":
            return _find_option(field, said)
        case "choices":
            found = [_find_option(field, one.strip()) for one in said.split(",") if one.strip()]
            values = list(dict.fromkeys(one for one in found if one is not None))
            return values if None not in found and _fits(field, len(values)) else None
        case _:
            return said if _fits_text(field, said) else None


def _read_number(field: FormField, said: str) -> int | float | None:
    try:
        value = int(said) if field.kind == "integer" else float(said.replace(",", "."))
        finite = math.isfinite(value)
    except (ValueError, OverflowError):  # thousands of digits, hundreds of digits
        return None
    return value if finite and _fits(field, value) else None


def _find_option(field: FormField, said: str) -> str | None:
    for value, title in field.options:
        if said.casefold() in (title.casefold(), value.casefold()):
            return value
    return None


def _fits(field: FormField, size: float) -> bool:
    least = field.least if field.least is not None else -math.inf
    return least <= size <= (field.most if field.most is not None else math.inf)


def _fits_text(field: FormField, said: str) -> bool:
    if len(said) > MAX_TEXT or not _fits(field, len(said)):
        return False
    try:
        match field.form:
            case "email":
                return _EMAIL.fullmatch(said) is not None
            case "uri":
                return _URI.fullmatch(said) is not None
            case "date":
                return bool(date.fromisoformat(said))
            case "date-time":
                return bool(datetime.fromisoformat(said))
            case _:
                return True
    except ValueError:
        return False


def _number(given: object) -> float | None:
    return float(given) if isinstance(given, int | float) and abs(given) < 1e15 else None


def _line(words: object, most: int = MAX_ABOUT) -> str:
    """Write a stranger's words in one line without marks."""
    line = re.sub(r"[\s`]+", " ", drop_hidden(clean(str(words or "")))).strip()
    return line if len(line) <= most else f"{line[: most - 1]}…"
