"""Sandboxes of this machine: bubblewrap's namespaces, or honestly none.

A gateway that runs as root lets the command run as `nobody`: limits on the number of processes
do not hold for root, and a bug in the kernel's namespaces would meet root. So the workspace is
handed over to `nobody` before the first command. bubblewrap itself stays root until then: it
must reach a workspace that lies below /root. A gateway that is not root gets a user namespace.
"""

import asyncio
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from agent_core.errors import ToolFailed
from agent_core.sandboxes import process, session
from agent_core.sandboxes.languages import find_languages
from agent_core.sandboxes.port import NOTHING, Language, ProcessResult, Running, Sandbox
from agent_core.tools.paths import OWN

NOBODY = 65534
PROBE_LIMIT = 5.0
MAX_PROCESSES = 512
"""Of all isolated commands of a gateway that runs as root together, else of each."""

_LIMITS = (
    "ulimit -c 0; ulimit -t {cpu}; ulimit -v 4194304; ulimit -f 2097152; "
    "{{ ulimit -u {processes} || ulimit -p {processes}; }} 2>/dev/null; "
)
"""CPU seconds, 4 GB of addresses, files of 1 GB (2 GB where the shell counts kilobytes)."""
_WATCHED = (
    "exec 3<&0 </dev/null; {{ read -r _ <&3; kill -KILL {whom}; }} >/dev/null 2>&1 & watch=$!; "
    "exec 3<&- 4>&2 2>/dev/null; "
    '"$0" -c "$1" 2>&4 4>&-; code=$?; kill -KILL $watch; wait $watch; exit $code'
)
"""The command as a child beside one that waits for the end of standard input. The gateway holds
the other end: however it dies, all of it dies at once. A signal at the parent's death, which
bubblewrap offers, comes too late for a parent that dies in the first moments, and reaches one
process only. Nobody but this shell has the watch as its child."""
_GROUP, _ALL = "0", "-1"
"""Whom the watch kills: its group; or, in a namespace of processes, everybody in it."""

_ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}  # noqa: S108
_ETC = ("alternatives", "ld.so.cache", "localtime", "mime.types")


def shell(command: str, limit: float, processes: int, whom: str) -> tuple[str, ...]:
    """The arguments that run `command` by bash, or sh without it, under resource limits."""
    path = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
    limits = _LIMITS.format(cpu=int(limit) + 1, processes=processes)
    return (path, "-c", limits + _WATCHED.format(whom=whom), path, command)


class BwrapSandbox:
    """Namespaces of this kernel: no network, no other processes, no files but the workspace."""

    name = "bwrap"
    isolated = True
    about = "Isolated by bubblewrap: no network, only the workspace; it shares this kernel."

    async def run(
        self,
        command: str,
        cwd: Path,
        limit: float,
        output: Callable[[str], None],
        env: Mapping[str, str] = NOTHING,
    ) -> ProcessResult:
        """As the port says; the workspace is /workspace inside."""
        return await process.run(await self._enter(command, cwd, limit, env), limit, output)

    async def start(
        self, command: str, cwd: Path, limit: float, env: Mapping[str, str] = NOTHING
    ) -> Running:
        """As the port says."""
        return await process.begin(await self._enter(command, cwd, limit, env), limit)

    @property
    def programs(self) -> Mapping[Language, str]:
        """Those of this machine: /usr is the same inside."""
        return find_languages(_ENV["PATH"])

    async def open_shell(self, cwd: Path, limit: float) -> session.ShellSession:
        """As the port says."""
        return await session.begin(lambda line: self._enter(line, cwd, limit, NOTHING))

    async def _enter(
        self, command: str, cwd: Path, limit: float, env: Mapping[str, str]
    ) -> process.ProcessSpec:
        root = os.geteuid() == 0
        place = Path(os.path.realpath(cwd))
        await asyncio.to_thread(prepare, place, root)
        argv = (*_namespaces(root), *_files(place), "--", *(_drop() if root else ()))
        inside = shell(command, limit, MAX_PROCESSES, _ALL)
        # by the environment, never by bwrap's own words: those anybody on this machine can read
        return process.ProcessSpec(argv=(*argv, *inside), env=_ENV | dict(env), cwd=place)


class PlainSubprocess:
    """A child process of this machine."""

    name = "unsafe-subprocess"
    isolated = False
    about = "Nothing isolates this: it can reach the network and every file of the gateway's user."

    async def run(
        self,
        command: str,
        cwd: Path,
        limit: float,
        output: Callable[[str], None],
        env: Mapping[str, str] = NOTHING,
    ) -> ProcessResult:
        """As the port says; a process that leaves its group can outlive the call."""
        return await process.run(self._enter(command, cwd, limit, env), limit, output)

    async def start(
        self, command: str, cwd: Path, limit: float, env: Mapping[str, str] = NOTHING
    ) -> Running:
        """As the port says; a process that leaves its group can outlive the gateway."""
        return await process.begin(self._enter(command, cwd, limit, env), limit)

    @property
    def programs(self) -> Mapping[Language, str]:
        """Those of this machine."""
        return find_languages(_ENV["PATH"])

    async def open_shell(self, cwd: Path, limit: float) -> session.ShellSession:
        """As the port says."""

        async def enter(line: str) -> process.ProcessSpec:
            return self._enter(line, cwd, limit, NOTHING)

        return await session.begin(enter)

    def _enter(
        self, command: str, cwd: Path, limit: float, more: Mapping[str, str]
    ) -> process.ProcessSpec:
        env = _ENV | dict(more) | {"PATH": f"{_ENV['PATH']}:/usr/sbin:/sbin"}
        return process.ProcessSpec(argv=shell(command, limit, 4096, _GROUP), env=env, cwd=cwd)


async def detect() -> Sandbox:
    """The best tier that works here, found out by running a command in it."""
    sandbox = BwrapSandbox()
    if shutil.which("bwrap") is None or (os.geteuid() == 0 and shutil.which("setpriv") is None):
        return PlainSubprocess()
    with tempfile.TemporaryDirectory(prefix="turnkeeper-") as folder:
        try:
            done = await sandbox.run("/usr/bin/true", Path(folder), PROBE_LIMIT, lambda _: None)
        except OSError:
            return PlainSubprocess()
    return sandbox if done.exit_code == 0 and not done.timed_out else PlainSubprocess()


def prepare(workspace: Path, root: bool) -> None:
    """Make the gateway's folder, and give the rest to `nobody` where the gateway is root.

    The folder is mounted read-only inside; it must be a real one, since a link in its place would
    mount what it points to. ToolFailed if it is not.
    """
    own = workspace / OWN
    own.mkdir(exist_ok=True)
    if not stat.S_ISDIR(own.lstat().st_mode):
        raise ToolFailed(f"{OWN} is not a folder any more; nothing runs until it is one.")
    if not root or workspace.stat().st_uid == NOBODY:
        return
    for here, folders, files, descriptor in os.fwalk(workspace, follow_symlinks=False):
        if here == str(workspace):
            folders.remove(OWN)
        for name in (*folders, *files):
            info = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if stat.S_ISDIR(info.st_mode) or info.st_nlink == 1:
                os.chown(name, NOBODY, NOBODY, dir_fd=descriptor, follow_symlinks=False)
    os.chown(workspace, NOBODY, NOBODY)


def _namespaces(root: bool) -> tuple[str, ...]:
    kinds = ("ipc", "pid", "net", "uts", "cgroup-try") if root else ("all",)
    return (
        shutil.which("bwrap") or "bwrap",
        *(f"--unshare-{kind}" for kind in kinds),
        "--die-with-parent",
        "--new-session",
    )


def _files(workspace: Path) -> tuple[str, ...]:
    system: list[str] = ["--ro-bind", "/usr", "/usr"]
    for path in map(Path, ("/bin", "/sbin", "/lib", "/lib64")):
        if path.is_symlink():
            system += ("--symlink", os.readlink(path), str(path))
        else:
            system += ("--ro-bind-try", str(path), str(path))
    system += ("--perms", "0755", "--dir", "/etc")
    for name in _ETC:
        system += ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    here = str(workspace)
    return (
        *system,
        *("--proc", "/proc", "--dev", "/dev"),
        *("--perms", "1777", "--size", str(512 << 20), "--tmpfs", "/tmp"),  # noqa: S108
        *("--bind", here, "/workspace", "--ro-bind", f"{here}/{OWN}", f"/workspace/{OWN}"),
        *("--chdir", "/workspace"),
    )


def _drop() -> tuple[str, ...]:
    who = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    rights = ("--no-new-privs", "--inh-caps=-all", "--bounding-set=-all")
    return (shutil.which("setpriv") or "setpriv", *who, *rights, "--")
