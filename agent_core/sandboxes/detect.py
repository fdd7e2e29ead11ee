"""Detects the tier that works on this machine by running a command in it; and the tier for none,
which runs nothing and says what to install."""

import asyncio
import importlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from agent_core.errors import ToolFailed
from agent_core.sandboxes.bwrap import BwrapTier
from agent_core.sandboxes.cgroups.groups import NO_GROUPS, ControlGroups
from agent_core.sandboxes.docker.tier import find_docker
from agent_core.sandboxes.e2b.settings import E2BAccess
from agent_core.sandboxes.landlock.tier import LandlockTier
from agent_core.sandboxes.languages import find_languages
from agent_core.sandboxes.link import LimitHolder, SandboxLimits
from agent_core.sandboxes.masks import NO_SECRETS, SecretFiles
from agent_core.sandboxes.monty.tier import MontyTier, find_monty
from agent_core.sandboxes.owners import hold_trial
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.port import Language
from agent_core.sandboxes.tier import Leak, Tier, TierUnusable
from agent_core.sandboxes.unsafe import UnsafeTier

PROBE_LIMIT = 5.0
"""Seconds for a command that does nothing."""
MEND = (
    "Install bubblewrap (as root, setpriv too), or use Linux 6.2 or newer with Landlock; "
    "SANDBOX_PROVIDER=unsafe-subprocess runs commands without isolation."
)
_REFUSAL = (
    "Not run: no sandbox works on this machine, and no command runs outside of one. Tell the "
    "person to ask the operator for this: {mend} Files can still be read and written by the tools "
    "for files. (Tried: {tried}.)"
)


class MissingTier:
    """No tier: it runs nothing. `faults`: why the others do not work, by their names."""

    name = "none"
    isolated = True
    about = "No sandbox works on this machine: a call runs nothing, and says what to install."
    cannot: frozenset[Leak] = frozenset()
    max_processes = 0
    masks = True
    limit_holder: LimitHolder = "itself"
    serves = False
    lists_processes = False
    shell = ("/bin/sh",)
    python = "python3"

    def __init__(self, faults: Mapping[str, str]) -> None:
        self.faults = faults

    @property
    def missing(self) -> str:
        """See the port."""
        return MEND

    @property
    def programs(self) -> Mapping[Language, str]:
        """This machine's programs, so that the tools exist and say so."""
        return find_languages("/usr/local/bin:/usr/bin:/bin")

    def find_folder(self, workspace: Path) -> str:
        """Return the workspace itself."""
        return str(workspace)

    def build_env(self, workspace: Path) -> Mapping[str, str]:
        """Return {}."""
        return {}

    def advise(self, output: str) -> str:
        """Return ""."""
        return ""

    async def open(
        self,
        workspace: Path,
        limits: SandboxLimits,
        hidden: SecretFiles = NO_SECRETS,
        *,
        lasts: bool = True,
    ) -> NoReturn:
        """Never."""
        tried = "; ".join(f"{name}: {fault}" for name, fault in self.faults.items())
        raise ToolFailed(_REFUSAL.format(mend=MEND, tried=tried))


async def detect(docker_host: str = "", groups: ControlGroups = NO_GROUPS) -> Tier:
    """Return the best tier that works here, otherwise one that runs nothing.

    Docker only if its image is there already, Landlock only if its self-test passes: it needs
    several features that a kernel may lack. Monty, which runs Python alone, comes last.
    """
    faults: dict[str, str] = {}
    for name in ("bwrap", "docker", "landlock", "monty"):
        try:
            tier = await find_tier(name, docker_host, groups=groups)
        except TierUnusable as error:
            faults[name] = str(error)
            continue
        if isinstance(tier, LandlockTier | MontyTier):
            pool = SandboxPool(tier)
            await pool.check()
            if not pool.contains:
                faults[name] = f"within reach are {', '.join(pool.leaks)}"
                continue
        return tier
    return MissingTier(faults)


async def find_tier(
    name: str,
    docker_host: str = "",
    e2b: E2BAccess | None = None,
    groups: ControlGroups = NO_GROUPS,
) -> Tier:
    """The tier of this name, or the best one for `auto`; `docker_host`: where Docker's engine is;
    `e2b`: how E2B is reached; `groups`: for sandboxes that are processes here. TierUnusable."""
    if name == "auto":
        return await detect(docker_host, groups)
    if name in ("docker", "boxlite"):
        return await find_docker(docker_host)
    if name == "monty":
        return find_monty()
    if name == "e2b":
        return await _find_e2b(e2b or E2BAccess())
    local = (BwrapTier(groups), LandlockTier(groups=groups), UnsafeTier(groups))
    tiers: dict[str, Tier] = {one.name: one for one in local}
    if fault := await find_fault(tiers[name]):
        raise TierUnusable(fault)
    return tiers[name]


async def can_enclose(tier: Tier, name: str) -> bool:
    """Return True if a browser can have a sandbox of its own beside those of `tier`, found by this
    name: by bubblewrap, if it works, unless the operator wants no sandbox."""
    if name == "auto" or not tier.isolated:  # auto has tried bubblewrap first
        return isinstance(tier, BwrapTier)
    return isinstance(tier, BwrapTier) or not await find_fault(BwrapTier())


async def _find_e2b(access: E2BAccess) -> Tier:
    try:  # importing its SDK takes a second: done off the loop
        found = await asyncio.to_thread(importlib.import_module, "agent_core.sandboxes.e2b.tier")
    except ImportError:
        raise TierUnusable("it needs the extra e2b: pip install 'turnkeeper[e2b]'") from None
    tier: Tier = await found.find_e2b(access)
    return tier


async def find_fault(tier: Tier) -> str:
    """Return the reason why the tier does not work here, "" if it does."""
    if not tier.isolated:
        return ""
    needed = {"bwrap": "bubblewrap"} if isinstance(tier, BwrapTier) else {}
    if needed and os.geteuid() == 0:
        needed["setpriv"] = "util-linux"
    for program, package in needed.items():
        if shutil.which(program) is None:
            return f"{program} is not installed (package {package})"
    pool = SandboxPool(tier)
    with hold_trial() as folder:
        try:
            done = await pool.run("/usr/bin/true", folder, PROBE_LIMIT, lambda _: None)
        except (OSError, ToolFailed) as error:
            return str(error).rstrip(".")
        finally:
            await pool.close()
    return "" if done.exit_code == 0 else f"a command fails in it: {done.output.strip()[:200]}"
