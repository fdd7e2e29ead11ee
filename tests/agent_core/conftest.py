"""What the agent's tests share."""

from collections.abc import AsyncIterator

import pytest

from agent_core.sandboxes.tier import Tier
from tests.fakes.sandboxes import end_sandboxes, find_tier


@pytest.fixture(autouse=True)
async def _sandboxes() -> AsyncIterator[None]:
    """No sandbox outlives the test that used it."""
    yield
    await end_sandboxes()


@pytest.fixture
async def tier(request: pytest.FixtureRequest) -> Tier:
    """The tier that the parameter names (`tests.fakes.sandboxes`)."""
    return await find_tier(request)
