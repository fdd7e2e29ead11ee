"""Tools described in few words, for models that hold little."""

import re

from agent_core.models.port import ToolSpec

_SENTENCE = re.compile(r"(?<=[.;])\s")


def shorten_spec(spec: ToolSpec) -> ToolSpec:
    """`spec` with the first sentence of its description."""
    first = _SENTENCE.split(spec.description, maxsplit=1)[0].rstrip(";")
    parameters = {key: _strip(value) for key, value in spec.parameters.items()}
    return ToolSpec(name=spec.name, description=first, parameters=parameters)


def _strip(value: object) -> object:
    """Return `value` of a schema without limits; a call that does not fit is told them."""
    if not isinstance(value, dict):
        return value
    limits = ("minimum", "maximum", "default")
    return {
        key: _strip(inner)
        for key, inner in value.items()
        if key not in limits or isinstance(inner, dict)  # an argument may have that name
    }
