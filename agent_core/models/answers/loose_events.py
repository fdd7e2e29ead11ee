"""Decodes events of answers as their protocol has them, and as servers and proxies write them."""

from types import NoneType, UnionType
from typing import Generic, TypeVar, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw, Struct
from msgspec.structs import fields

from agent_core.models.answers.broken import Broken
from agent_core.phrases import phrase

T = TypeVar("T", bound=Struct)
_TEXTS = ("text", "content", "value")
"""Fields of an object for which others write its text alone, or the other way round."""


class EventDecoder(Generic[T]):
    """Decodes events of one protocol into `kind`. A field of another type does not spoil them: an
    object stands for a list of one, a number for its digits, what cannot be meant for nothing.
    `name`: an event as people are told of one that is none."""

    def __init__(self, kind: type[T], name: str) -> None:
        self._kind, self._name = kind, name
        self._decode = msgspec.json.Decoder(kind, strict=False).decode

    def decode(self, data: bytes) -> T:
        """Decode an event; raises Broken."""
        try:
            return self._decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
        try:
            whole = data.decode(errors="replace")
            return _fit_object(msgspec.json.decode(whole, type=dict[str, object]), self._kind)
        except (msgspec.DecodeError, RecursionError):
            raise Broken(phrase("fault_senseless", detail=self._name), "malformed") from None


def _fit_object(given: dict[str, object], kind: type[T]) -> T:
    fit = {
        one.name: _fit(given[one.encode_name], one.type)
        for one in fields(kind)
        if one.encode_name in given
    }
    return kind(**{name: value for name, value in fit.items() if value is not UNSET})


def _fit(given: object, wanted: object) -> object:
    """Return what `given` means as a `wanted`, UNSET for nothing. Raises ValidationError where
    something of a list would be lost."""
    kinds = get_args(wanted) if isinstance(wanted, UnionType) else (wanted,)
    if object in kinds or (given is None and NoneType in kinds):
        return given
    kind = kinds[0]
    if kind is Raw:
        return Raw(msgspec.json.encode(given))
    if get_origin(kind) is list:
        return _fit_rows(given, get_args(kind)[0])
    if isinstance(kind, type) and issubclass(kind, Struct):
        return _fit_struct(given, kind)
    if kind is str and isinstance(given, dict):
        given = next((given[name] for name in _TEXTS if name in given), None)
    if kind is str and isinstance(given, int | float):
        given = str(given)
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError:
        return UNSET


def _fit_rows(given: object, kind: type[Struct]) -> list[object]:
    names = {one.encode_name for one in fields(kind)}
    if isinstance(given, dict) and not names & set(given):  # numbered
        given = list(given.values())
    rows = given if isinstance(given, list) else [given]
    fit = [_fit_struct(row, kind) for row in rows if row]
    if UNSET in fit:
        raise msgspec.ValidationError("not a list")
    return fit


def _fit_struct(given: object, kind: type[Struct]) -> object:
    if isinstance(given, dict):
        return _fit_object(given, kind)
    names = (name for name in _TEXTS if name in kind.__struct_fields__)
    if isinstance(given, str) and (name := next(names, None)):
        return kind(**{name: given})
    return UNSET
