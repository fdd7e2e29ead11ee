"""How often a turn may hand work over, over all its branches."""

from agent_core.errors import ToolFailed
from agent_core.scope import Scope

MOST = 3
"""Hand-overs of one turn."""
NAME = "handoff"


async def counted(scope: Scope) -> None:
    """Count one more; raises ToolFailed where the turn has had its share."""
    if await scope.nth(NAME) > MOST:
        raise ToolFailed(f"{MOST} hand-overs a turn are the most. Go on with what there is.")
