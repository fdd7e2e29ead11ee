"""The tier of bubblewrap: namespaces of this machine's kernel.

A gateway that runs as root makes everything inside run as `nobody`: limits on the number of
processes do not hold for root, and a bug in the kernel's namespaces would meet root. So the
workspace is handed over to `nobody` before the first command. bubblewrap itself stays root until
then: it must reach a workspace that is below /root. A gateway that is not root gets a user
namespace.

The supervisor is the first process of its namespace: nothing inside can stop or kill it, and when
it ends, with the gateway's socket, the kernel ends all the others.
"""

import asyncio
import marshal
import os
import shutil
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import MAGIC_NUMBER
from pathlib import Path

from agent_core.sandboxes import seccomp
from agent_core.sandboxes.cgroups.groups import NO_GROUPS, ControlGroups
from agent_core.sandboxes.environment import ETC, NAME, make_env, make_etc
from agent_core.sandboxes.folders import NOBODY, prepare
from agent_core.sandboxes.languages import find_languages
from agent_core.sandboxes.link import SandboxLimits, SupervisorSpec
from agent_core.sandboxes.masks import NO_SECRETS, SecretFiles
from agent_core.sandboxes.network import PORT
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
from agent_core.tools.paths import OWN

WORKSPACE, HOME, TMP = "/workspace", "/home/user", "/tmp"  # noqa: S108  # paths inside the sandbox
_INSIDE_PYTHON, _INSIDE_SUPERVISOR = "/opt/turnkeeper/python", "/opt/turnkeeper/supervisor.pyc"
_LIBRARIES = "/opt/turnkeeper/lib"
"""The shared library of the interpreter, if it has one, and nothing else: the folder named in its
program is not there, and another one's of the same version may be."""
_USR = Path("/usr")
_SHARED_MEMORY = 512 << 20
_MEMORY_FILES = 1 << 30
_PATH = "/usr/local/bin:/usr/bin:/bin"
_ALIASES = "/opt/turnkeeper/bin"
"""Programs under the names by which they are called as well."""
_SEAL = ("--remount-ro", "/dev", "--remount-ro", "/")
"""The last options: what else is in memory has no size, and would be the gateway's user's."""
_HIDDEN = ("sandbox", "snapshots")
"""Folders of the gateway's that nothing inside sees."""


class BwrapTier:
    """Namespaces of this kernel: no network, no other processes, no files but the workspace."""

    name = "bwrap"
    isolated = True
    about = (
        "In a sandbox by bubblewrap: the workspace, HOME, /tmp and what you start stay for the "
        "next command; no network but the hosts that a call names; it shares this kernel."
    )
    cannot: frozenset[Leak] = frozenset()
    missing = ""
    max_processes = 4096
    masks = True
    serves = True
    lists_processes = True

    def __init__(self, groups: ControlGroups = NO_GROUPS) -> None:
        self._groups, self.limit_holder = groups, groups.limit_holder

    @property
    def programs(self) -> Mapping[Language, str]:
        """This machine's programs: /usr is the same inside."""
        return find_languages(_PATH)

    @property
    def shell(self) -> tuple[str, ...]:
        """This machine's: /usr is the same inside."""
        return (find_shell(),)

    @property
    def python(self) -> str:
        """The gateway's interpreter, wherever it is installed."""
        return find_inside_python()

    def find_folder(self, workspace: Path) -> str:
        """See the port."""
        return WORKSPACE

    def build_env(self, workspace: Path) -> Mapping[str, str]:
        """See the port."""
        libraries = {"LD_LIBRARY_PATH": _LIBRARIES} if _bind_libpython() else {}
        return make_env(HOME, f"{_PATH}:{_ALIASES}") | libraries

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
        root = os.geteuid() == 0
        await asyncio.to_thread(prepare, workspace, root)
        spec = SupervisorSpec(limits=limits, folders=(WORKSPACE, HOME, TMP), proxy_port=PORT)
        who = NOBODY if root else os.getuid()
        with seccomp.open_filter() as refusals, _open_files(who) as written:
            argv = (
                *self.enclose(workspace, refusals, root=root),
                *(word for one, place in written for word in _write(one, place)),
                *(word for one in hidden.names for word in _mask(one, hidden)),
                *_SEAL,
                "--",
                *(_drop(NOBODY) if root else ()),
                *(self.python, "-I", "-S", "-B", _INSIDE_SUPERVISOR, spec.encode()),
            )
            files = (refusals, *(descriptor for descriptor, _ in written))
            process = ProcessSpec(argv=argv, env={"PATH": _PATH}, cwd=workspace, inherited=files)
            return await open_local(process, limits, self._groups)

    def enclose(self, workspace: Path, refusals: int, *, root: bool) -> tuple[str, ...]:
        """The words that call bubblewrap, as far as they keep something in. `refusals`: the open
        file of the filter of system calls."""
        filtered = ("--seccomp", str(refusals))
        return (*_namespaces(root), *filtered, *_system(), *_files(workspace))


def find_inside_python() -> str:
    """The gateway's interpreter, as it is called inside."""
    python, prefix = find_python()
    return str(python) if prefix == _USR else f"{_INSIDE_PYTHON}/bin/{python.name}"


def enclose_program(binds: Iterable[str], user: int | None, refusals: int | None) -> list[str]:
    """The words before a program that has a sandbox to itself: the system, an empty /tmp, and
    `binds`. `user`: who it is, where the gateway is root; `refusals`: the open file of the filter
    of system calls."""
    filtered = () if refusals is None else ("--seccomp", str(refusals))
    return [
        *_namespaces(user is not None),
        *filtered,
        *_system(),
        *("--perms", "1777", "--size", str(_MEMORY_FILES), "--tmpfs", TMP, "--chdir", TMP),
        *binds,
        *_SEAL,
        "--",
        *(() if user is None else _drop(user)),
    ]


def _namespaces(root: bool) -> tuple[str, ...]:
    kinds = ("ipc", "pid", "net", "uts", "cgroup-try") if root else ("all",)
    return (
        shutil.which("bwrap") or "bwrap",
        *(f"--unshare-{kind}" for kind in kinds),
        *("--as-pid-1", "--die-with-parent", "--new-session", "--hostname", NAME),
    )


@cache
def compile_supervisor() -> bytes:
    """Return the supervisor's program in bytecode, which starts sooner than its text."""
    code = compile(SUPERVISOR.read_bytes(), SUPERVISOR.name, "exec", dont_inherit=True)
    return MAGIC_NUMBER + bytes(12) + marshal.dumps(code)


@contextmanager
def _open_files(who: int) -> Iterator[list[tuple[int, str]]]:
    """Yield the open files written for the sandbox, with their paths inside."""
    contents = {_INSIDE_SUPERVISOR: compile_supervisor()}
    group = NOBODY if who == NOBODY else os.getgid()
    for name, text in make_etc(who, group, HOME).items():
        contents[f"/etc/{name}"] = text.encode()
    opened: list[tuple[int, str]] = []
    try:
        for place, data in contents.items():
            descriptor = os.memfd_create("file")
            opened.append((descriptor, place))
            os.write(descriptor, data)
            os.lseek(descriptor, 0, os.SEEK_SET)
        yield opened
    finally:
        for descriptor, _ in opened:
            os.close(descriptor)


def _write(descriptor: int, place: str) -> tuple[str, ...]:
    return ("--perms", "0444", "--ro-bind-data", str(descriptor), place)


def _system() -> tuple[str, ...]:
    """Options for the system's programs, read-only, and for each sandbox's own folders."""
    system: list[str] = ["--ro-bind", "/usr", "/usr"]
    for library in map(Path, ("/bin", "/sbin", "/lib", "/lib64")):
        if library.is_symlink():
            system += ("--symlink", os.readlink(library), str(library))
        else:
            system += ("--ro-bind-try", str(library), str(library))
    parents = ("/etc", "/etc/ssl", "/etc/pki", "/etc/pki/tls", "/home", "/opt", "/opt/turnkeeper")
    for path in (*parents, _ALIASES, _LIBRARIES):  # otherwise only root's
        system += ("--perms", "0755", "--dir", path)
    for name in ETC:
        system += ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    system += ("--symlink", "/usr/bin/python3", f"{_ALIASES}/python")
    prefix = find_python()[1]
    python = () if prefix == _USR else ("--ro-bind", str(prefix), _INSIDE_PYTHON)
    return (
        *(*system, *python, *_bind_libpython()),
        *("--proc", "/proc", "--dev", "/dev"),
        *("--perms", "1777", "--size", str(_SHARED_MEMORY), "--tmpfs", "/dev/shm"),  # noqa: S108
    )


def _bind_libpython() -> tuple[str, ...]:
    library = _find_libpython()
    if library is None or library.is_relative_to(_USR):
        return ()
    there = ("--ro-bind", str(library), f"{_LIBRARIES}/{library.name}")
    return (*there, "--setenv", "LD_LIBRARY_PATH", _LIBRARIES)


@cache
def _find_libpython() -> Path | None:
    """Return the shared library that has this interpreter's code; None if its program has it."""
    name = sysconfig.get_config_var("INSTSONAME") or ""
    if ".so" not in name:
        return None
    with open("/proc/self/maps") as maps:
        paths = (line.rstrip().split(maxsplit=5)[-1] for line in maps)
        return next((Path(path) for path in paths if path.endswith(f"/{name}")), None)


def _files(workspace: Path) -> tuple[str, ...]:
    here, state = str(workspace), f"{workspace}/{OWN}/sandbox"
    return (
        *("--bind", f"{state}/home", HOME, "--bind", f"{state}/tmp", TMP),
        *("--bind", here, WORKSPACE, "--ro-bind", f"{here}/{OWN}", f"{WORKSPACE}/{OWN}"),
        *(word for name in _HIDDEN for word in _hide(f"{WORKSPACE}/{OWN}/{name}")),
        *("--chdir", WORKSPACE),
    )


def _hide(place: str) -> tuple[str, ...]:
    return ("--tmpfs", place, "--remount-ro", place)


def _mask(path: str, hidden: SecretFiles) -> tuple[str, ...]:
    """A file is a device that cannot be opened, a folder is empty."""
    place = f"{WORKSPACE}/{path}"
    return _hide(place) if path in hidden.folders else ("--ro-bind", "/dev/null", place)


def _drop(user: int) -> tuple[str, ...]:
    who = (f"--reuid={user}", f"--regid={user}", "--clear-groups")
    rights = ("--no-new-privs", "--inh-caps=-all", "--bounding-set=-all")
    return (shutil.which("setpriv") or "setpriv", *who, *rights, "--")
