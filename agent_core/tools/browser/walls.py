"""Chooses the browser's walls by the tier of sandboxes."""

from agent_core.sandboxes.detect import can_enclose
from agent_core.sandboxes.docker.tier import DockerTier
from agent_core.sandboxes.tier import Tier
from agent_core.tools.browser.bubblewrap_walls import BubblewrapWalls
from agent_core.tools.browser.container_walls import ContainerWalls
from agent_core.tools.browser.enclosure import Walls


async def choose_walls(tier: Tier, name: str) -> Walls | None:
    """Return Docker's if its image has Chromium; otherwise bubblewrap's if it works, unless the
    operator wants none. `name`: by which the tier was found."""
    if isinstance(tier, DockerTier) and tier.browser:
        return ContainerWalls(tier)
    return BubblewrapWalls() if await can_enclose(tier, name) else None
