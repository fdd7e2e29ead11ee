"""Which walls the browser gets beside the sandboxes of a tier."""

from agent_core.sandboxes.detect import can_enclose
from agent_core.sandboxes.docker.tier import DockerTier
from agent_core.sandboxes.tier import Tier
from agent_core.tools.browser.bubblewrap_walls import BubblewrapWalls
from agent_core.tools.browser.container_walls import ContainerWalls
from agent_core.tools.browser.enclosure import Walls


async def choose_walls(tier: Tier, name: str) -> Walls | None:
    """Docker's where the image of its sandboxes has Chromium; else bubblewrap's where it works, but
    not where the operator wants none. `name`: by which the tier was found."""
    if isinstance(tier, DockerTier) and tier.browser:
        return ContainerWalls(tier)
    return BubblewrapWalls() if await can_enclose(tier, name) else None
