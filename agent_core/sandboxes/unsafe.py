"""The tier that isolates nothing: commands are child processes of this machine."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from agent_core.sandboxes.cgroups.groups import NO_GROUPS, ControlGroups
from agent_core.sandboxes.folders import hide_from_git
from agent_core.sandboxes.languages import find_languages
from agent_core.sandboxes.link import SandboxLimits, SupervisorSpec
from agent_core.sandboxes.masks import NO_SECRETS, SecretFiles
from agent_core.sandboxes.port import Language
from agent_core.sandboxes.tier import (
    SUPERVISOR,
    Leak,
    LocalSandbox,
    ProcessSpec,
    find_python,
    find_shell,
    open_local,
)

_PATH = "/usr/local/bin:/usr/bin:/bin"
_ENV = {"PATH": f"{_PATH}:/usr/sbin:/sbin", "HOME": "/tmp", "LANG": "C.UTF-8"}  # noqa: S108


class UnsafeTier:
    """Child processes of this machine, which end with the gateway."""

    name = "unsafe-subprocess"
    isolated = False
    about = "Nothing isolates this: it can reach the network and every file of the gateway's user."
    cannot: frozenset[Leak] = frozenset()
    missing = ""
    max_processes = 4096
    masks = False
    serves = True
    lists_processes = True

    def __init__(self, groups: ControlGroups = NO_GROUPS) -> None:
        self._groups, self.limit_holder = groups, groups.limit_holder

    @property
    def programs(self) -> Mapping[Language, str]:
        """This machine's programs."""
        return find_languages(_PATH)

    @property
    def shell(self) -> tuple[str, ...]:
        """This machine's."""
        return (find_shell(),)

    @property
    def python(self) -> str:
        """The gateway's."""
        return str(find_python()[0])

    def find_folder(self, workspace: Path) -> str:
        """Return the workspace itself."""
        return os.fspath(workspace)

    def build_env(self, workspace: Path) -> Mapping[str, str]:
        """See the port."""
        return _ENV

    def advise(self, output: str) -> str:
        """See the port."""
        return ""

    async def open(
        self,
        workspace: Path,
        limits: SandboxLimits,
        hidden: SecretFiles = NO_SECRETS,
        *,
        lasts: bool = True,
    ) -> LocalSandbox:
        """See the port."""
        await asyncio.to_thread(hide_from_git, workspace)
        spec = SupervisorSpec(limits=limits, folders=(os.fspath(workspace),))
        argv = (self.python, "-I", "-S", "-B", str(SUPERVISOR), spec.encode())
        process = ProcessSpec(argv=argv, env=_ENV, cwd=workspace)
        return await open_local(process, limits, self._groups)
