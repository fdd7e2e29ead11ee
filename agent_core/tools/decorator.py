"""`@tool`: a typed function becomes a tool."""

import inspect
from collections.abc import Callable
from typing import get_type_hints, overload

from pydantic import BaseModel, create_model

from agent_core.errors import Misuse, ToolFailed
from agent_core.messages import Access, Repetition
from agent_core.tools.contract import Tool, ToolContext

Function = Callable[..., object]


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

    An exception of the function is a result that the model reads. `repetition` tells what may
    happen to a call interrupted by a crash (`effect`: never run twice).
    """

    def make(of: Function) -> Tool:
        async def call(arguments: BaseModel, context: ToolContext) -> str:
            given = {name: getattr(arguments, name) for name in type(arguments).model_fields}
            try:
                value = of(**given)
                return str(await value if inspect.isawaitable(value) else value)
            except ToolFailed:
                raise
            except Exception as error:
                raise ToolFailed(f"{type(error).__name__}: {error}") from error

        text = (inspect.getdoc(of) or name_of(of)).splitlines()[0]
        return Tool(
            name=name_of(of),
            description=text,
            arguments=_arguments(of),
            repetition=repetition,
            access=access,
            call=call,
            limit=limit,
        )

    return make if function is None else make(function)


def name_of(function: Function) -> str:
    """The function's name, which is the tool's."""
    return str(getattr(function, "__name__", "tool"))


def _arguments(function: Function) -> type[BaseModel]:
    hints = get_type_hints(function)
    fields: dict[str, tuple[object, object]] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise Misuse(f"{name_of(function)}: a tool cannot take *{name}; name its arguments")
        if name not in hints:
            raise Misuse(f"{name_of(function)}: the argument {name!r} needs a type")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[name] = (hints[name], default)
    model: type[BaseModel] = create_model(name_of(function), **fields)  # type: ignore[call-overload]
    return model
