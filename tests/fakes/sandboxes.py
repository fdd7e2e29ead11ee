"""Sandboxes of the tests: those of the product, ended by the test that used them."""

from functools import cache

import pytest

from agent_core.sandboxes.bwrap import BwrapTier
from agent_core.sandboxes.cgroups.groups import open_control_groups
from agent_core.sandboxes.docker.tier import DockerTier, find_docker
from agent_core.sandboxes.landlock.tier import LandlockTier
from agent_core.sandboxes.link import SandboxLimits
from agent_core.sandboxes.pool import IDLE, SandboxPool
from agent_core.sandboxes.tier import Tier
from agent_core.sandboxes.unsafe import UnsafeTier
from tests.fakes.needs import NEEDS_BWRAP, NEEDS_LANDLOCK

BWRAP = pytest.param("bwrap", marks=NEEDS_BWRAP)
LANDLOCK = pytest.param("landlock", marks=NEEDS_LANDLOCK)
UNSAFE = "unsafe"
DOCKER = pytest.param("docker", marks=pytest.mark.slow)
"""For the fixture `tier`. Docker's engine takes seconds to start, so a quick run starts it once."""
_MADE: list[SandboxPool] = []
_FOUND: dict[str, DockerTier] = {}


async def find_tier(request: pytest.FixtureRequest) -> Tier:
    """The tier that a test has as the parameter of its fixture."""
    if request.param == "bwrap":
        return BwrapTier()
    if request.param == "landlock":
        return LandlockTier()
    if request.param == UNSAFE:
        return UnsafeTier()
    address = request.getfixturevalue("docker_engine")
    if address not in _FOUND:
        _FOUND[address] = await find_docker(address)
    return _FOUND[address]


async def find_browser_tier(request: pytest.FixtureRequest) -> DockerTier:
    """Docker's, whose image has Chromium."""
    address = request.getfixturevalue("browser_engine")
    known = f"{address} with Chromium"
    if known not in _FOUND:
        _FOUND[known] = await find_docker(address)
    return _FOUND[known]


@cache
def can_make_groups() -> bool:
    """True if the kernel lets this process limit sandboxes by control groups."""
    groups = open_control_groups()
    try:
        return groups.limit_holder == "kernel"
    finally:
        groups.close()


def make_sandboxes(
    tier: Tier, limits: SandboxLimits | None = None, idle: float = IDLE
) -> SandboxPool:
    """A pool that `end_sandboxes` ends, also where its test fails."""
    pool = SandboxPool(tier, limits, idle=idle)
    _MADE.append(pool)
    return pool


def bwrap_sandbox() -> SandboxPool:
    """Sandboxes by bubblewrap."""
    return make_sandboxes(BwrapTier())


def unsafe_sandbox() -> SandboxPool:
    """Places that isolate nothing."""
    return make_sandboxes(UnsafeTier())


async def end_sandboxes() -> None:
    """End what runs in all of them; they can be used again."""
    for pool in _MADE:
        await pool.close()
