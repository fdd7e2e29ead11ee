"""Roles and user groups of the owners of jobs, as they are when a job is due.

A job keeps its owner as they were when it was made; rights may depend on the groups.
"""

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from agent_core import ambient
from gateway.errors import DeliveryError
from gateway.messages import Conversation, Inbound, JobFired, Sender
from gateway.ports import Accept, Adapter, GroupReading

log = logging.getLogger("turnkeeper.jobs")

PATIENCE = 3.0
"""Seconds that a due job waits for them; then the last known ones hold."""
KEPT, KEPT_FOR = 1_000, 60.0
"""Owners whose groups are kept, and for how many seconds; a platform that fails is not asked for
so long either."""

Found = tuple[str, ...] | None


class OwnerGroups:
    """Passes inbound values on to `accept`, owners of due jobs with the groups of now."""

    def __init__(self, adapters: Mapping[str, Adapter], accept: Accept) -> None:
        self._adapters, self._accept = adapters, accept
        self._known: OrderedDict[tuple[str, str], tuple[float, Found]] = OrderedDict()
        self._down = dict[str, float]()

    async def accept(self, inbounds: Sequence[Inbound]) -> None:
        """Store the values, as `Accept` does."""
        await self._accept([await self._renew(one) for one in inbounds])

    async def _renew(self, inbound: Inbound) -> Inbound:
        match inbound:
            case JobFired(owner=Sender() as owner) if owner.groups:
                found = await self._find(inbound.conversation, owner)
                if found is None or found == owner.groups:
                    return inbound
                return replace(inbound, owner=replace(owner, groups=found))
            case _:
                return inbound

    async def _find(self, where: Conversation, owner: Sender) -> Found:
        adapter, key = self._adapters.get(owner.platform), (owner.key, where.workspace)
        if not isinstance(adapter, GroupReading) or where.platform != owner.platform:
            return None
        if self._down.get(where.platform, 0.0) > ambient.monotonic():
            return None  # hundreds of due jobs would each wait as long
        until, found = self._known.get(key, (0.0, None))
        if until <= ambient.monotonic():
            found = await self._read(adapter, where, owner)
            self._known[key] = (ambient.monotonic() + KEPT_FOR, found)
            self._known.move_to_end(key)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        return found

    async def _read(self, adapter: GroupReading, where: Conversation, owner: Sender) -> Found:
        try:
            async with ambient.limit(PATIENCE):
                return await adapter.read_groups(where, owner.id)
        except (DeliveryError, TimeoutError) as error:
            self._down[where.platform] = ambient.monotonic() + KEPT_FOR
            log.info("groups_not_read", extra={"why": str(error)})
        except Exception:  # boundary: an adapter's failure costs the groups, not the run
            log.exception("groups_not_read")
        return None
