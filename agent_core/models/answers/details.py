"""Reads answers of which a detail is not what its protocol says: fields of another type, counts of
tokens, the reason with which it ended in the words of providers and of proxies."""

from types import NoneType, UnionType
from typing import Generic, TypeVar, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw, Struct
from msgspec.structs import fields

from agent_core.models.answers.broken import Broken
from agent_core.models.port import Finish
from agent_core.phrases import phrase

T = TypeVar("T", bound=Struct)
_TEXTS = ("text", "content", "value")
"""Fields of an object for which others write its text alone, or the other way round."""
MAX_COUNT = 1_000_000_000
CUT = frozenset(
    [
        "length",
        "max_tokens",
        "max_output_tokens",
        "model_length",  # Mistral
        "model_context_window_exceeded",
        "continuation",  # Google
        "pause_turn",  # Anthropic, after a long work of its own
    ]
)
REFUSED = frozenset(
    [
        "content_filter",
        "sensitive",  # Zhipu
        "refusal",
        "safety",  # the others are Google's
        "recitation",
        "language",
        "blocklist",
        "prohibited_content",
        "spii",
        "model_armor",
    ]
)
CALLS = frozenset(["tool_calls", "function_call", "tool_use"])
GARBLED = frozenset(
    [
        "function_call_filter",  # Google's, by OpenAI's protocol
        "malformed_function_call",
        "malformed_response",
        "unexpected_tool_call",
        "too_many_tool_calls",
        "missing_thought_signature",
    ]
)
"""Reasons of an answer that its provider could not read: it is asked for again."""
GIVEN_UP = frozenset(
    [
        "error",  # Mistral, OpenRouter
        "abort",  # vLLM, SGLang
        "network_error",  # Zhipu
        "insufficient_system_resource",  # DeepSeek
    ]
)
"""Reasons that make the answer a part of one."""


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


def read_count(usage: object, *path: str) -> int:
    """Return the number at `path`, 0 if there is none that can be meant."""
    for name in path:
        usage = usage.get(name) if isinstance(usage, dict) else None
    return clean_count(usage)


def clean_count(given: object) -> int:
    """Return the number that a server gives as a count, 0 if it cannot be meant."""
    try:
        count = int(float(given)) if isinstance(given, int | float | str) else 0
    except (ValueError, OverflowError):
        return 0
    return count if 0 < count <= MAX_COUNT else 0


def read_ending(reason: str | None) -> str:
    """Return the reason in one form. Proxies write `MAX_TOKENS` or `FinishReason.MAX_TOKENS`, and
    Google adds its own after a colon: `content_filter: PROHIBITED_CONTENT`."""
    return (reason or "").partition(":")[0].rpartition(".")[2].strip().lower()


def find_finish(ending: str) -> Finish:
    """Return how an answer with this ending is meant; any other one is whole."""
    if ending in CUT:
        return "length"
    if ending in REFUSED:
        return "refused"
    return "tool_calls" if ending in CALLS else "stop"
