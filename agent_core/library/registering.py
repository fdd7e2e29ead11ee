"""A tool from a function, a description and parameters, checked where it is registered.

Parameters are JSON Schema, or the short form `{"path": "string", "lines": "integer (optional)"}`.
"""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping

from pydantic import BaseModel, GetJsonSchemaHandler

from agent_core.errors import Misuse, ToolFailed
from agent_core.messages import Access
from agent_core.tools.contract import Tool, ToolCallable, ToolContext
from agent_core.tools.decorator import write_json
from agent_core.tools.finding.schema import Given, Schema, objects

Function = Callable[..., object]

OPTIONAL = "(optional)"
TYPES = {
    "string": "string",
    "str": "string",
    "boolean": "boolean",
    "bool": "boolean",
    "integer": "integer",
    "int": "integer",
    "number": "number",
    "float": "number",
    "array": "array",
    "list": "array",
    "object": "object",
    "dict": "object",
}
"""Words for types, and JSON Schema's."""


def make_tool(
    name: str,
    function: Function,
    description: str,
    parameters: Mapping[str, object],
    access: Access,
) -> Tool:
    """Make the tool; raises Misuse if `function` does not take the declared `parameters`."""
    if not (isinstance(name, str) and name.isidentifier()):
        raise Misuse(f"{name!r} is no name for a tool: use letters, digits and _")
    if not callable(function):
        raise Misuse(f"{name}: give a function, not {function!r:.200}")
    if not isinstance(parameters, Mapping):
        raise Misuse(f"{name}: write parameters as JSON Schema, or each as a text like 'string'")
    schema = _schema(name, parameters)
    _check_signature(name, function, schema)
    return Tool(
        name=name,
        description=description,
        arguments=_make_arguments(schema),
        schema=schema,
        repetition="effect",
        access=access,
        call=_adapt_function(function),
    )


def _schema(name: str, parameters: Mapping[str, object]) -> Schema:
    if isinstance(parameters.get("properties"), Mapping) or parameters.get("type") == "object":
        return objects(dict(parameters))
    short = {key: text for key, text in parameters.items() if isinstance(text, str)}
    if len(short) < len(parameters):
        raise Misuse(f"{name}: write parameters as JSON Schema, or each as a text like 'string'")
    properties: dict[str, object] = {}
    for key, text in short.items():
        word = text.replace(OPTIONAL, "").strip().lower()
        if word not in TYPES:
            raise Misuse(f"{name}: {key!r} has the type {text!r}; there are {', '.join(TYPES)}")
        properties[key] = {"type": TYPES[word]}
    return {
        "type": "object",
        "properties": properties,
        "required": [key for key, text in short.items() if OPTIONAL not in text],
        "additionalProperties": False,
    }


def _check_signature(name: str, function: Function, schema: Schema) -> None:
    """Check that `function` takes each parameter, and requires no other."""
    told, required = _names(schema.get("properties")), _names(schema.get("required"))
    try:
        taken = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise Misuse(f"{name}: {function!r} cannot be called with named arguments") from None
    if only := [p.name for p in taken if p.kind is p.POSITIONAL_ONLY and p.default is p.empty]:
        raise Misuse(f"{name}: {only[0]!r} cannot be given by its name")
    named = {p.name: p for p in taken if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    takes_all = any(p.kind is p.VAR_KEYWORD for p in taken)
    if not takes_all and (extra := [key for key in told if key not in named]):
        raise Misuse(f"{name}: the function does not take {extra[0]!r}")
    for key, parameter in named.items():
        if parameter.default is parameter.empty and key not in required:
            how = "is optional there" if key in told else "is not among the parameters"
            raise Misuse(f"{name}: the function needs {key!r}, which {how}")


def _names(listed: object) -> tuple[str, ...]:
    return tuple(str(one) for one in listed) if isinstance(listed, Iterable) else ()


def _make_arguments(schema: Schema) -> type[BaseModel]:
    class Arguments(Given):
        """Taken as they are: `schema` has checked them."""

        @classmethod
        def __get_pydantic_json_schema__(
            cls, core: object, handler: GetJsonSchemaHandler
        ) -> Schema:
            return schema

    return Arguments


def _adapt_function(function: Function) -> ToolCallable:
    """Wrap `function` as a tool; it runs in a thread unless it is async."""

    async def call(arguments: BaseModel, context: ToolContext) -> str:
        given: dict[str, object] = arguments.model_dump()
        try:
            if inspect.iscoroutinefunction(function):
                value = await function(**given)
            else:
                value = await asyncio.to_thread(function, **given)
        except ToolFailed:
            raise
        except Exception as error:
            raise ToolFailed(f"{type(error).__name__}: {error}") from error
        return _render_value(value)

    return call


def _render_value(value: object) -> str:
    """Render a function's value for the model. `{"success": False, "error": …}` is a failure,
    `{"success": True, "data": …}` is its data."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and isinstance(value.get("success"), bool):
        if not value["success"]:
            raise ToolFailed(str(value.get("error") or "it failed, and says no more"))
        value = value.get("data", "done")
        if isinstance(value, str):
            return value
    return write_json(value)
