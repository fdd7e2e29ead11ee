"""The schema of a tool's arguments as shown to a model, as short as possible."""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import cast

from pydantic import BaseModel

from agent_core.tools.finding.schema import Schema

_REF = "#/$defs/"
_OF_SCHEMAS = frozenset({"anyOf", "oneOf", "allOf"})
_CHECKED_HERE = frozenset({"minLength", "maxLength", "minItems", "maxItems", "pattern"})
"""Limits that a call is checked for when it comes; a model need not read them each time."""
NOTHING: tuple[object, ...] = ("", [], {}, None, 0)
"""Obvious defaults: empty, none, 0 and false."""
COUNTS = (0, 1)
"""Obvious minimums of numbers of lines, seconds or results."""
ANYTHING: tuple[object, ...] = ({}, True)
"""Further properties of any kind are obvious."""


@lru_cache(512)
def describe_arguments(arguments: type[BaseModel]) -> dict[str, object]:
    """Their schema, made once for all toolboxes: it costs a millisecond for each tool."""
    schema = arguments.model_json_schema()
    named = cast(Schema, schema.get("$defs", {}))
    used = Counter(_find_refs(schema))
    inline = {
        ref: named[name] for name in named if used[ref := _REF + name] == 1 or not named[name]
    }
    return _simplify(cast(Schema, _put_in(schema, inline)))


def _find_refs(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(ref := value.get("$ref"), str):
            yield ref
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _find_refs(inner)


def _put_in(value: object, inline: Schema) -> object:
    """Inline definitions that are used once. A recursive one is used from elsewhere too."""
    if isinstance(value, list):
        return [_put_in(inner, inline) for inner in value]
    if not isinstance(value, dict):
        return value
    found = {key: _put_in(inner, inline) for key, inner in value.items() if key != "$defs"}
    if (ref := str(found.get("$ref"))) in inline:
        del found["$ref"]
        found = cast(Schema, _put_in(inline[ref], inline)) | found
    named = value.get("$defs", {})
    left = {name: _put_in(named[name], inline) for name in named if _REF + name not in inline}
    return found | ({"$defs": left} if left else {})


def _simplify(schema: dict[str, object], own: bool = True) -> dict[str, object]:
    """Drop what pydantic adds and what says nothing: fewer tokens, same meaning. `own`: it is the
    schema of all arguments, described by the tool itself."""
    slim: dict[str, object] = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        if key in _CHECKED_HERE or (key == "default" and value in NOTHING):
            continue
        if key == "minimum" and value in COUNTS:
            continue
        if own and key == "description" or (key == "additionalProperties" and value in ANYTHING):
            continue
        if key in ("properties", "$defs") and isinstance(value, dict):
            slim[key] = {name: _simplify(inner, False) for name, inner in value.items()}
        elif key == "anyOf" and isinstance(value, list) and {"type": "null"} in value:
            (kind, *others) = (one for one in value if one != {"type": "null"})
            slim |= _simplify(kind, False) if not others else {key: _simplify_each(value)}
        elif key in _OF_SCHEMAS and isinstance(value, list):
            slim[key] = _simplify_each(value)
        elif isinstance(value, dict):
            slim[key] = _simplify(value, False)
        else:
            slim[key] = value
    return slim


def _simplify_each(schemas: list[Schema]) -> list[Schema]:
    return [_simplify(one, False) for one in schemas]
