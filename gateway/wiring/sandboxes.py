"""Chooses the tier of sandboxes while the rest of the gateway is imported: to try one takes a
quarter of a second, most of it in other processes."""

import asyncio
import logging
from contextlib import AsyncExitStack

from agent_core.sandboxes.cgroups.groups import ControlGroups, open_control_groups
from agent_core.sandboxes.detect import find_tier
from agent_core.sandboxes.tier import Tier, TierUnusable
from gateway.settings import SANDBOX, Settings

log = logging.getLogger("turnkeeper.assembly")


async def choose_tier(settings: Settings, stack: AsyncExitStack) -> Tier:
    """Return the tier of the settings, or the best one that works here. `stack` removes its control
    groups. SettingsError."""
    groups = await asyncio.to_thread(open_control_groups)
    stack.push_async_callback(asyncio.to_thread, groups.close)
    tier = await _find_tier(settings, groups)
    if tier.missing:
        log.warning("no_sandbox", extra={"mend": tier.missing})
    return tier


async def _find_tier(settings: Settings, groups: ControlGroups) -> Tier:
    try:
        return await find_tier(settings.sandbox, settings.docker_host, settings.e2b, groups)
    except TierUnusable as error:
        mend = f"does not work here ({error}); mend that, or use auto."
        raise SANDBOX.error(settings.sandbox, mend) from None
