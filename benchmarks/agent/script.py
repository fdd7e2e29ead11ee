"""What the scripted models are made of, and how a mechanism is switched off."""

import contextlib
import json
from collections.abc import Iterator
from types import ModuleType

from agent_core.messages import calls_of, text_of
from agent_core.models.port import ModelRequest


@contextlib.contextmanager
def switched_off(on: bool, module: ModuleType, **values: object) -> Iterator[None]:
    """`values` in place of what `module` has, unless `on`."""
    before = {name: getattr(module, name) for name in values}
    try:
        for name, value in () if on else values.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def last(request: ModelRequest) -> str:
    return text_of(request.messages[-1])


def made(request: ModelRequest, name: str = "") -> int:
    """Calls in the request so far."""
    calls = (call for message in request.messages for call in calls_of(message))
    return sum(call.name == name or not name for call in calls)


def steps(*rows: str, **more: object) -> str:
    """A plan whose steps follow each other."""
    before: list[str] = []
    listed = []
    for n, row in enumerate(rows, 1):
        listed.append({"id": f"s{n}", "description": row, "needs": before, **more})
        before = [f"s{n}"]
    return json.dumps({"steps": listed})
