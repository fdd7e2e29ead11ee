"""Arguments of tools that others made, against the JSON schema that came with them."""

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import cache, partial
from itertools import count
from typing import Protocol, TypeAlias, cast

import msgspec
from pydantic import JsonValue, RootModel

Schema: TypeAlias = dict[str, object]
MAX_FAULTS = 5
MAX_CHECKS = 10_000
"""Keywords of a schema that are looked at. Ten lines that refer to each other twice make millions;
they would hold up everything else."""
_Check: TypeAlias = Callable[[object, object, object, object], "Iterable[_Fault] | None"]
_checks: ContextVar[Iterable[int]] = ContextVar("checks")
"""Counts those of the running validation."""


class Given(RootModel[dict[str, JsonValue]]):
    """Arguments as given: their schema is not ours."""


class _Fault(Protocol):
    message: str
    absolute_path: Iterable[object]


class _Validator(Protocol):
    def iter_errors(self, instance: object) -> Iterable[_Fault]: ...


class _Make(Protocol):
    def __call__(self, schema: Schema, *, registry: object) -> _Validator: ...


def faults(schema: Schema, arguments: object) -> tuple[str, ...]:
    """Describe what does not fit; () if everything does. References are not fetched."""
    if not isinstance(arguments, dict):
        return ("arguments: must be an object",)
    from referencing import Registry

    found: list[str] = []
    _checks.set(count())
    try:
        for fault in _kind()(schema, registry=Registry()).iter_errors(arguments):
            path = ".".join(str(part) for part in fault.absolute_path)
            found.append(f"{path or 'arguments'}: {fault.message}"[:300])
            if len(found) == MAX_FAULTS:
                break
    except Exception:  # noqa: BLE001  # a foreign schema is invalid or endless: the server decides
        return tuple(found)
    return tuple(found)


def objects(schema: object) -> Schema:
    """`schema` as providers take it: of an object."""
    known = msgspec.convert(schema, dict[str, object]) if isinstance(schema, dict) else {}
    return {"properties": {}, **known, "type": "object"}


@cache
def _kind() -> _Make:
    """JSON Schema without patterns: a stranger's may take for ever, so the server checks them."""
    import jsonschema  # type: ignore[import-untyped]

    def nothing(*_: object) -> tuple[()]:
        return ()

    kind = jsonschema.Draft202012Validator
    counted = {name: partial(_check, check) for name, check in kind.VALIDATORS.items()}
    off = {"pattern": nothing, "patternProperties": nothing}
    made = jsonschema.validators.extend(kind, {**counted, **off})
    return cast(_Make, made)


def _check(
    check: _Check, validator: object, value: object, instance: object, schema: object
) -> Iterable[_Fault]:
    if next(iter(_checks.get())) > MAX_CHECKS:
        raise RecursionError("a schema that never ends")
    yield from check(validator, value, instance, schema) or ()
