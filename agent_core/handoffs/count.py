"""Limits how often a turn may delegate work, over all its branches."""

from agent_core.errors import ToolFailed
from agent_core.scope import Scope

MAX_HANDOFFS = 3
"""Hand-overs of one turn."""
NAME = "handoff"


async def count_handoff(scope: Scope) -> None:
    """Count one more; raises ToolFailed if the turn has used up its share."""
    if await scope.nth(NAME) > MAX_HANDOFFS:
        raise ToolFailed(
            f"{MAX_HANDOFFS} hand-overs a turn are the most. Go on with what there is."
        )
