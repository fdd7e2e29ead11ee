"""A sandbox that says that it isolates."""

import pytest

from agent_core.sandboxes.unsafe import UnsafeTier
from gateway.wiring import sandboxes


class Isolated(UnsafeTier):
    """Says that it isolates, so that the policy lets people approve for longer."""

    isolated = True


def isolate(patch: pytest.MonkeyPatch) -> None:
    """Let every gateway of the test choose `Isolated`, whatever it is set to."""

    async def choose(*_: object) -> Isolated:
        return Isolated()

    patch.setattr(sandboxes, "find_tier", choose)
