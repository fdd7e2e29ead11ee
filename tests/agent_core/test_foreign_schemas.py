"""Schemas of strangers that say much in few lines: the arguments are judged, or left to the server,
and nothing waits for it."""

from collections.abc import Callable
from typing import Any

import pytest

from agent_core.tools.finding.schema import faults

LINES = 40
"""Each refers twice to the one before: as many looks as atoms in a grain."""
SHAPE: dict[str, Any] = {
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
}
GROWING: dict[str, Callable[[dict[str, str]], dict[str, Any]]] = {
    "allOf": lambda one: {"allOf": [one, one]},
    "anyOf": lambda one: {"anyOf": [{"not": one}, {"not": one}]},
    "oneOf": lambda one: {"oneOf": [one, one]},
    "if": lambda one: {"if": one, "then": one, "else": one},
    "not": lambda one: {"not": {"allOf": [one, one]}},
    "dependentSchemas": lambda one: {"dependentSchemas": {"n": one, "m": one}, "properties": {"n": {}}},
    "unevaluated": lambda one: {"allOf": [one], "unevaluatedProperties": one},
}  # fmt: skip


def make_schema(grow: Callable[[dict[str, str]], dict[str, Any]]) -> dict[str, Any]:
    lines: dict[str, Any] = {"a0": {"type": "object"}}
    for n in range(LINES):
        lines[f"a{n + 1}"] = grow({"$ref": f"#/$defs/a{n}"})
    return {"$defs": lines, **SHAPE, "allOf": [{"$ref": f"#/$defs/a{LINES}"}]}


@pytest.mark.parametrize("kind", GROWING)
def test_a_schema_without_an_end_is_left_to_its_server(kind: str) -> None:
    schema = make_schema(GROWING[kind])
    assert isinstance(faults(schema, {"n": 1, "m": 1}), tuple)
    assert faults(SHAPE, {"n": "one"}) == ("n: 'one' is not of type 'integer'",), (
        "the next is judged"
    )


@pytest.mark.parametrize("kind", ["$ref", "items", "itself"])
def test_a_schema_that_names_itself_is_judged(kind: str) -> None:
    own = {"$ref": "#/$defs/tree"}
    tree: dict[str, Any] = {"type": "object", "properties": {"leaf": {"type": "string"}}}
    more = {"$ref": own, "items": {"type": "array", "items": own}, "itself": {"$ref": "#"}}
    tree["properties"]["next"] = more[kind]
    deep: dict[str, Any] = {"leaf": 5}
    for _ in range(30):
        deep = {"leaf": "x", "next": [deep] if kind == "items" else deep}
    (fault,) = faults({"$defs": {"tree": tree}, **tree}, deep)
    assert fault.endswith("5 is not of type 'string'")


def test_many_arguments_are_judged_to_their_end() -> None:
    row = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    schema = {"properties": {"rows": {"type": "array", "items": row}}}
    rows: list[dict[str, Any]] = [{"a": "x", "b": n} for n in range(500)]
    assert faults(schema, {"rows": rows}) == ()
    rows[-1]["b"] = "last"
    assert faults(schema, {"rows": rows}) == ("rows.499.b: 'last' is not of type 'integer'",)
