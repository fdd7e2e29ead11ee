"""Calls of tools by skills: handled like the model's own calls, so policy, approvals, hooks and
journal apply."""

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
    """Return the results in order; calls that need approval share one card. `scope` is the batch's
    own."""
    written = ((name, msgspec.json.encode(arguments).decode()) for name, arguments in wanted)
    return await act(scope, brief, hands, await make_calls(scope, written))


def require_good(result: ToolResult) -> str:
    """Return the result's content; raises ToolFailed if the call failed or was denied."""
    if result.error:
        raise ToolFailed(result.content)
    return result.content
