"""What a model is shown of a tool's arguments says the same as pydantic, in fewer words."""

import jsonschema
from pydantic import BaseModel, Field, JsonValue

from agent_core.tools.finding.argument_schema import describe_arguments


class Leaf(BaseModel):
    """A leaf."""

    size: int = Field(default=1, ge=1, le=9)


class Branch(BaseModel):
    leaf: Leaf
    """Named once: it stands in its place."""
    others: list["Branch"] = []
    """It names itself, so it keeps its name."""


class Tree(BaseModel):
    """A tree."""

    branch: Branch
    pair: tuple[Leaf | None, Leaf | None] | None = None
    anything: dict[str, JsonValue] = {}


def test_what_is_named_once_stands_in_its_place() -> None:
    class Pot(BaseModel):
        leaves: list[Leaf]
        given: dict[str, JsonValue] = {}

    assert describe_arguments(Pot) == {
        "properties": {
            "leaves": {
                "items": {
                    "description": "A leaf.",
                    "properties": {"size": {"default": 1, "maximum": 9, "type": "integer"}},
                    "type": "object",
                },
                "type": "array",
            },
            "given": {"type": "object"},
        },
        "required": ["leaves"],
        "type": "object",
    }


def test_what_names_itself_keeps_its_name_and_all_is_checked_as_before() -> None:
    shown = describe_arguments(Tree)
    assert set(shown["$defs"]) == {"Branch", "Leaf"}  # type: ignore[call-overload]
    jsonschema.Draft202012Validator.check_schema(shown)
    leaf = {"size": 3}
    fits = {"branch": {"leaf": leaf, "others": [{"leaf": leaf}]}, "pair": [leaf, None]}
    odd = (
        {"branch": {"leaf": leaf, "others": [{"leaf": 3}]}},
        {"branch": {"leaf": {"size": 10}}},
        {"branch": {"leaf": leaf}, "anything": []},
        {},
    )
    for schema in (shown, Tree.model_json_schema()):
        assert jsonschema.Draft202012Validator(schema).is_valid(fits)
        assert not any(jsonschema.Draft202012Validator(schema).is_valid(one) for one in odd)
