"""`@tool`: a typed function becomes a tool."""

import dataclasses
import inspect
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import get_type_hints, overload

import msgspec
from pydantic import BaseModel, Field, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import PydanticJsonSchemaWarning

from agent_core.errors import Misuse, ToolFailed
from agent_core.messages import TOOL_NAME, Access, Repetition
from agent_core.tools.contract import Tool, ToolContext

Function = Callable[..., object]
_BY_PLACE = inspect.Parameter.POSITIONAL_ONLY
_AS_JSON = (Mapping, list, tuple, set, frozenset, BaseModel)


@overload
def tool(function: Function) -> Tool: ...
@overload
def tool(
    *, access: Access = "read", repetition: Repetition = "effect", limit: float = 30.0
) -> Callable[[Function], Tool]: ...


def tool(
    function: Function | None = None,
    *,
    access: Access = "read",
    repetition: Repetition = "effect",
    limit: float = 30.0,
) -> Tool | Callable[[Function], Tool]:
    """Make a tool from a typed function, sync or async, described by its docstring's first line.

    An exception of the function is a result that the model reads, and a generator gives all that it
    yields; values with parts are written as JSON. Raises Misuse for what cannot be a tool.
    `repetition` tells what may happen to a call interrupted by a crash (`effect`: never run
    twice).
    """

    def make(of: Function) -> Tool:
        model, places = _read_arguments(of)

        async def call(arguments: BaseModel, context: ToolContext) -> str:
            given = {place.name: getattr(arguments, field) for field, place in places.items()}
            first = [given.pop(one.name) for one in places.values() if one.kind is _BY_PLACE]
            try:
                return await _write_result(of(*first, **given))
            except ToolFailed:
                raise
            except (Exception, SystemExit) as error:  # a command line wrapped as a tool may exit
                raise ToolFailed(f"{type(error).__name__}: {error}") from error

        text = (inspect.getdoc(of) or name_of(of)).splitlines()[0]
        return Tool(
            name=name_of(of),
            description=text,
            arguments=model,
            repetition=repetition,
            access=access,
            call=call,
            limit=limit,
        )

    return make if function is None else make(function)


def name_of(function: Function) -> str:
    """The function's name, which is the tool's."""
    return str(getattr(function, "__name__", "tool"))


async def _write_result(value: object) -> str:
    """Return a function's value as text; of a generator all that it yields, by lines."""
    value = await value if inspect.isawaitable(value) else value
    if inspect.isasyncgen(value):
        return "\n".join([_write_value(one) async for one in value])
    if inspect.isgenerator(value):
        return "\n".join(map(_write_value, value))
    return _write_value(value)


def _write_value(value: object) -> str:
    """Return mappings, sequences, dataclasses and pydantic models as JSON where they can be, all
    else by `str`."""
    if isinstance(value, _AS_JSON) or dataclasses.is_dataclass(type(value)):
        with suppress(TypeError, ValueError, RecursionError):  # surrogates, what holds itself
            return write_json(value)
    return str(value)


def write_json(value: object) -> str:
    """Return `value` as JSON, what JSON cannot express by `str`. Raises TypeError, ValueError or
    RecursionError."""
    return msgspec.json.encode(value, enc_hook=_convert).decode()


def _convert(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump()
    return dict(value) if isinstance(value, Mapping) else str(value)


def _read_arguments(function: Function) -> tuple[type[BaseModel], dict[str, inspect.Parameter]]:
    """Return the model of a function's arguments, and the argument of each of its fields. Raises
    Misuse."""
    name = name_of(function)
    if not TOOL_NAME.fullmatch(name):
        raise Misuse(f"{name}: a tool is named by up to 64 letters of ASCII, digits, _ and -")
    try:
        hints, parameters = get_type_hints(function), inspect.signature(function).parameters
    except (NameError, TypeError, ValueError) as error:
        raise Misuse(f"{name}: a tool is a function with types that exist ({error})") from None
    places = {_name_field(one): parameter for one, parameter in parameters.items()}
    fields = {field: _make_field(name, one, hints) for field, one in places.items()}
    try:
        model: type[BaseModel] = create_model(name, **fields)  # type: ignore[call-overload]
        with warnings.catch_warnings():
            warnings.simplefilter("error", PydanticJsonSchemaWarning)
            model.model_json_schema()
    except (PydanticUserError, PydanticJsonSchemaWarning, TypeError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise Misuse(f"{name}: an argument has a type or default that is no JSON ({why})") from None
    return model, places


def _make_field(
    function: str, parameter: inspect.Parameter, hints: dict[str, object]
) -> tuple[object, object]:
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise Misuse(f"{function}: a tool cannot take *{name}; name its arguments")
    if name not in hints:
        raise Misuse(f"{function}: the argument {name!r} needs a type")
    default = ... if parameter.default is parameter.empty else parameter.default
    if _name_field(name) == name:
        return hints[name], default
    return hints[name], Field(default, alias=name, title=name)


def _name_field(argument: str) -> str:
    """Return the field for an argument, whose own name pydantic may use or not take."""
    taken = argument.startswith(("_", "model_")) or hasattr(BaseModel, argument)
    return f"argument_{argument.lstrip('_')}" if taken else argument
