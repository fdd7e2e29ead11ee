"""Calls of tools that no model wrote: what a skill does goes the way of the model's own calls, so
policy, approvals, hooks and journal hold for it."""

from collections.abc import Sequence

import msgspec

from agent_core.errors import ToolFailed
from agent_core.messages import ToolResult
from agent_core.orchestration.acting import act
from agent_core.orchestration.brief import Brief, Hands
from agent_core.orchestration.made_calls import make_calls
from agent_core.scope import Scope
from agent_core.skills.contract import Wanted


async def call_tools(
    scope: Scope, brief: Brief, hands: Hands, wanted: Sequence[Wanted]
) -> tuple[ToolResult, ...]:
    """What the calls gave, in their order; those that need a person stand on one card. `scope` is
    the batch's own."""
    written = ((name, msgspec.json.encode(arguments).decode()) for name, arguments in wanted)
    return await act(scope, brief, hands, await make_calls(scope, written))


def require_good(result: ToolResult) -> str:
    """What the call gave; raises ToolFailed where it failed or was denied."""
    if result.error:
        raise ToolFailed(result.content)
    return result.content
