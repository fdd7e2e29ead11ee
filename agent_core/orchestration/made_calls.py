"""Calls of tools that no model wrote: a skill's, a script's."""

import re
from collections.abc import Iterable

from agent_core.messages import ToolCall
from agent_core.scope import Scope

CALLS = "skill-"
"""Prefix of such calls' ids."""
COUNTED = "skill-call"


async def make_calls(scope: Scope, wanted: Iterable[tuple[str, str]]) -> tuple[ToolCall, ...]:
    """Calls of the tools that are named, with their arguments as JSON; no other call of the turn
    has their ids. `scope` is the batch's own."""
    n, turn = await scope.nth(COUNTED), re.sub(r"[^A-Za-z0-9]", "", scope.turn_id)[-8:]
    return tuple(
        ToolCall(id=f"{CALLS}{n}-{k}-{turn}", name=name, arguments=arguments)
        for k, (name, arguments) in enumerate(wanted, 1)
    )
