"""The tier of Landlock: for containers, and for kernels without user namespaces. Needs no
privilege.

Landlock confines file access and signals; a filter of system calls refuses unknown ones, and asks
the supervisor about sockets, modes and times (guard.py). Each sandbox has a loopback address of its
own: commands' localhost is that address, so that they reach no server of the machine, and none of
another sandbox.

A gateway that is root, and has the capabilities, makes commands run as `nobody`, as with
bubblewrap. If folders above the workspace are closed to `nobody`, it keeps the right to pass
through them; Landlock still decides what is opened. Otherwise commands run as the gateway's user,
without capabilities.
"""

import asyncio
import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.sandboxes.cgroups.groups import NO_GROUPS, ControlGroups
from agent_core.sandboxes.environment import ETC, make_env
from agent_core.sandboxes.folders import ALIASES, HOME, NOBODY, STATE, TMP, prepare
from agent_core.sandboxes.landlock import calls
from agent_core.sandboxes.languages import find_languages
from agent_core.sandboxes.link import SandboxLimits, SupervisorSpec
from agent_core.sandboxes.masks import NO_SECRETS, SecretFiles
from agent_core.sandboxes.network import PORT
from agent_core.sandboxes.port import Language
from agent_core.sandboxes.seccomp import build_guarded_filter
from agent_core.sandboxes.tier import (
    Leak,
    LocalSandbox,
    ProcessSpec,
    find_python,
    find_shell,
    open_local,
)
from agent_core.tools.paths import OWN

NEWEST = 99
_PROGRAM = Path(__file__).with_name("supervisor.py")
_PATH = "/usr/local/bin:/usr/bin:/bin"
_READ = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/proc/cpuinfo", "/proc/filesystems", "/proc/loadavg", "/proc/meminfo", "/proc/stat"),
    *("/proc/sys/kernel/osrelease", "/proc/uptime", "/proc/version", "/proc/vmstat"),
    *("/proc/sys/vm/overcommit_memory", "/sys/devices/system/cpu"),
)
_SETTINGS = (
    *ETC,
    *("hosts", "ImageMagick-*", "lsb-release", "nsswitch.conf", "perl", "R", "terminfo", "texmf"),
)
"""The readable part of /etc: nothing about the machine's people and secrets."""
_ADVICE = (
    (
        re.compile(
            r"(?<![\w.])/tmp\b.*(ermission denied|EACCES)|(ermission denied|EACCES).* '?/tmp\b"
        ),
        "[There is no /tmp in this sandbox; use $TMPDIR.]",
    ),
    (
        re.compile(
            r"/proc\b.*ermission denied|ermission denied.*/proc\b|mount -t proc|lookup self"
            r"|can't open /proc|netlink socket"
        ),
        "[This sandbox shows neither processes nor connections: /proc has none. What a shell "
        "started is known by `jobs` and $!, and ended by `kill` with that number.]",
    ),
    (
        re.compile(r"SemLock|/dev/shm|sem_open|shm_open|shmget"),
        "[This sandbox has no shared memory; in Python, use threads or subprocess.]",
    ),
    (
        re.compile(r"AF_UNIX|unix socket|Unix socket"),
        "[This sandbox has no Unix sockets by name; use localhost and a port.]",
    ),
)
"""Error messages about what the tier lacks, and what to do instead."""
_USE = tuple(f"/dev/{name}" for name in ("full", "null", "random", "tty", "urandom", "zero"))


_TO_BE_ANOTHER = {calls.CHOWN, calls.KILL, calls.SETGID, calls.SETUID, calls.SETPCAP}


class LandlockSpec(Struct, frozen=True, kw_only=True):
    """Additional configuration of its supervisor. `user`: -1 for the gateway's; `paths`: allowed
    ones, by use (read, use, change); `barred`: the folder whose modes and times cannot be changed.
    """

    address: str
    abi: int
    user: int
    capabilities: tuple[int, ...]
    paths: Mapping[str, tuple[str, ...]]
    barred: str

    def encode(self, basis: SupervisorSpec) -> str:
        """Encode it as the one argument."""
        paths = {how: list(some) for how, some in self.paths.items()}
        own = {"address": self.address, "abi": self.abi, "user": self.user, "barred": self.barred}
        own |= {"capabilities": list(self.capabilities), "paths": paths}
        return json.dumps(json.loads(basis.encode()) | own)


class LandlockTier:
    """Landlock and a filter of system calls: no network, no files but the workspace."""

    name = "landlock"
    isolated = True
    about = (
        "Isolated by Landlock: no network but its own localhost, only the workspace, HOME and "
        "$TMPDIR (no /tmp, no shared memory); it shares this kernel. It cannot hide that other "
        "processes exist, sizes and dates of files whose path is known, or secret files of the "
        "workspace (commands there are asked about), count memory exactly, or keep the copies in "
        ".turnkeeper from commands."
    )
    cannot: frozenset[Leak] = frozenset({"names", "secrets", "processes", "copies"})
    missing = ""
    max_processes = 16_384
    """For all sandboxes together; its supervisor counts those of each."""
    masks = False
    serves = True
    lists_processes = False

    def __init__(self, abi: int = NEWEST, groups: ControlGroups = NO_GROUPS) -> None:
        self._abi, self._groups, self.limit_holder = abi, groups, groups.limit_holder

    @property
    def programs(self) -> Mapping[Language, str]:
        """This machine's programs: /usr is the same inside."""
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
        return os.path.realpath(workspace)

    def build_env(self, workspace: Path) -> Mapping[str, str]:
        """See the port. Programs that would use inotify poll instead: its events would name files
        outside."""
        home, tmp, aliases = self._find_state(workspace)
        return make_env(home, f"{_PATH}:{aliases}") | {
            "TMPDIR": tmp,
            "GIT_CONFIG_NOSYSTEM": "1",
            "SYSTEM_WGETRC": "/dev/null",
            "CHOKIDAR_USEPOLLING": "1",
            "WATCHFILES_FORCE_POLLING": "1",
        }

    def advise(self, output: str) -> str:
        """See the port."""
        found = (advice for words, advice in _ADVICE if words.search(output))
        return "\n".join(found)

    async def open(
        self,
        workspace: Path,
        limits: SandboxLimits,
        hidden: SecretFiles = NO_SECRETS,
        *,
        lasts: bool = True,
    ) -> LocalSandbox:
        """See the port."""
        abi = min(calls.find_abi(), self._abi)
        if abi < calls.FILES or not build_guarded_filter(1, scoped=True):
            raise ToolFailed("This kernel has no Landlock, or not enough of it (Linux 6.2).")
        place = Path(os.path.realpath(workspace))
        prefix = find_python()[1]
        user, kept = choose_user(place, prefix)
        await asyncio.to_thread(prepare, place, user >= 0)
        spec = LandlockSpec(
            address=f"127.{64 + ambient.pick(128)}.{ambient.pick(256)}.{1 + ambient.pick(254)}",
            abi=abi,
            user=user,
            capabilities=kept,
            paths=self.allow(place, prefix),
            barred=f"{place}/{OWN}",
        )
        basis = SupervisorSpec(limits=limits, folders=(str(place),), proxy_port=PORT)
        argv = (self.python, "-I", "-S", "-B", str(_PROGRAM), spec.encode(basis))
        process = ProcessSpec(argv=argv, env={"PATH": _PATH}, cwd=place)
        return await open_local(process, limits, self._groups)

    def allow(self, workspace: Path, prefix: Path) -> dict[str, tuple[str, ...]]:
        """The files that are allowed, by how."""
        home, tmp, _ = self._find_state(workspace)
        change = (str(workspace), home, tmp)
        settings = (str(one) for name in _SETTINGS for one in Path("/etc").glob(name))
        return {"read": (*_READ, *settings, str(prefix)), "use": _USE, "change": change}

    def _find_state(self, workspace: Path) -> tuple[str, str, str]:
        state = f"{os.path.realpath(workspace)}/{OWN}/{STATE}"
        return f"{state}/{HOME}", f"{state}/{TMP}", f"{state}/{ALIASES}"


def choose_user(workspace: Path, prefix: Path) -> tuple[int, tuple[int, ...]]:
    """Return the user of commands, -1 for the gateway's, and their capabilities."""
    if os.geteuid() != 0:
        return -1, ()
    has = calls.list_capabilities()
    if not has.issuperset(_TO_BE_ANOTHER):
        return -1, ()
    closed = any(not _is_open(one) for place in (workspace, prefix) for one in place.parents)
    if closed and calls.READ_SEARCH not in has:
        return -1, ()
    return NOBODY, (calls.READ_SEARCH,) if closed else ()


def _is_open(folder: Path) -> bool:
    return bool(folder.stat().st_mode & stat.S_IXOTH)
