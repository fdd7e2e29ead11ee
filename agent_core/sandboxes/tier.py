"""The contract of a tier, which opens sandboxes; and how one is started as a process of this
machine."""

import asyncio
import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Literal, Protocol, TypeVar

from msgspec import Struct

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.sandboxes import supervisor
from agent_core.sandboxes.cgroups.groups import NO_GROUPS, ControlGroups
from agent_core.sandboxes.link import LimitHolder, Link, SandboxLimits
from agent_core.sandboxes.masks import NO_SECRETS, SecretFiles
from agent_core.sandboxes.port import Language

SECONDS_TO_START = 60.0
"""Seconds for a new sandbox to take commands, beside whatever the machine has to do."""
SECONDS_TO_DIE = 5.0
Leak = Literal[
    "files", "names", "secrets", "network", "sockets", "processes", "environment", "memory",
    "signals", "namespaces", "copies", "limits", "start",
]  # fmt: skip
"""A leak found from inside."""
LEAKS: Mapping[Leak, str] = {
    "files": "files outside",
    "names": "the size and date of a file outside whose path is known",
    "secrets": "secret files of the workspace (commands there are asked about)",
    "network": "the network",
    "sockets": "sockets of this machine",
    "processes": "the existence of other processes",
    "environment": "the environment of others",
    "memory": "the memory of others",
    "signals": "signals to others",
    "namespaces": "namespaces of its own",
    "copies": "the gateway's copies for undo, in the workspace",
    "limits": "more than the limits",
    "start": "nothing (the self-test could not run)",
}
"""Descriptions for an operator of what is within reach then."""


def describe_leaks(leaks: Iterable[Leak]) -> str:
    """Describe them in a fixed order."""
    found = frozenset(leaks)
    return ", ".join(words for leak, words in LEAKS.items() if leak in found)


SUPERVISOR = Path(__file__).with_name("supervisor.py")


class FileCarrier(Protocol):
    """Copies a workspace's files to a remote sandbox, and back. SandboxGone if there is no sandbox
    any more, ToolFailed if copying fails."""

    async def send(self) -> None:
        """Send the workspace's changes, before a command."""

    async def fetch(self, command: str) -> str:
        """Fetch a command's changes; return a note for the model."""


class OpenSandbox(Protocol):
    """A sandbox that takes commands."""

    @property
    def link(self) -> Link:
        """The way to its supervisor."""

    @property
    def carrier(self) -> FileCarrier | None:
        """The carrier of files; None if commands work in the workspace itself."""

    @property
    def note(self) -> str:
        """A note about the fate of the previous sandbox, for the first command's result; "" if the
        pool knows best."""

    async def save(self) -> None:
        """Save its content besides the workspace, unless that is in the workspace's folder."""

    async def close(self) -> None:
        """End it with everything inside, and wait until it is gone."""


class ToldSandbox(OpenSandbox, Protocol):
    """A sandbox that keeps its supervisor's error output."""

    @property
    def said(self) -> bytes:
        """The error output, known when it is closed."""


S = TypeVar("S", bound=ToldSandbox)


class TierUnusable(Exception):
    """The requested tier does not work here; the text says why."""


class Tier(Protocol):
    """A way to isolate commands from the rest of the machine."""

    @property
    def name(self) -> str:
        """Its name in settings and /health."""

    @property
    def isolated(self) -> bool:
        """True if nothing outside of the sandbox can be reached or changed."""

    @property
    def about(self) -> str:
        """Describes its isolation in one sentence for people and models."""

    @property
    def missing(self) -> str:
        """The software to install before anything can run; "" if it can."""

    @property
    def max_processes(self) -> int:
        """The value of RLIMIT_NPROC, which counts all processes of a user, in a user namespace."""

    @property
    def cannot(self) -> frozenset[Leak]:
        """Leaks that it cannot prevent, as `about` says."""

    @property
    def limit_holder(self) -> LimitHolder:
        """The holder of the limits of memory and processes."""

    @property
    def programs(self) -> Mapping[Language, str]:
        """The languages that code can be run in, each with the words before a file's path."""

    @property
    def shell(self) -> tuple[str, ...]:
        """The words before `-c` and a command: bash where there is one."""

    @property
    def python(self) -> str:
        """An interpreter, as a shell inside calls it."""

    def find_folder(self, workspace: Path) -> str:
        """Return the workspace's path inside."""

    def build_env(self, workspace: Path) -> Mapping[str, str]:
        """Return the environment of commands."""

    def advise(self, output: str) -> str:
        """Return advice after a failure with this `output`; "" for none."""

    @property
    def masks(self) -> bool:
        """True if it can hide files of the workspace."""

    @property
    def lists_processes(self) -> bool:
        """True if programs inside see the other processes there."""

    @property
    def serves(self) -> bool:
        """True if programs inside can listen at a port, which is reached from outside by the
        link."""

    async def open(
        self,
        workspace: Path,
        limits: SandboxLimits,
        hidden: SecretFiles = NO_SECRETS,
        *,
        lasts: bool = True,
    ) -> OpenSandbox:
        """Open a sandbox around a workspace, in which the files `hidden` are empty if the tier can
        hide them. `lasts`: its other content is kept for the next one. ToolFailed if that is
        impossible."""


class ProcessSpec(Struct, frozen=True, kw_only=True):
    """A process to start. `env` is its whole environment; `inherited`: open files that it gets."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: Path
    inherited: tuple[int, ...] = ()


class LocalSandbox:
    """A sandbox whose supervisor is a process of this machine, at the other end of its input."""

    carrier = None
    note = ""

    def __init__(
        self, link: Link, process: asyncio.subprocess.Process, end_group: Callable[[], None]
    ) -> None:
        self._link, self._process, self._end_group = link, process, end_group
        self.said = b""
        """Its error output, known when it is closed."""

    @property
    def link(self) -> Link:
        return self._link

    async def save(self) -> None:
        """See the port: HOME and /tmp are in the workspace's folder, so nothing is saved."""

    async def close(self) -> None:
        """See the port; it ends by itself when its socket does, and is killed if not."""
        self._link.close()
        try:
            async with ambient.limit(SECONDS_TO_DIE):
                _, self.said = await self._process.communicate()
        except TimeoutError:
            await asyncio.to_thread(self._end_group)
            for pid in reversed(supervisor.list_alive(self._process.pid)):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            _, self.said = await self._process.communicate()
        await asyncio.to_thread(self._end_group)


async def open_local(
    spec: ProcessSpec, limits: SandboxLimits, groups: ControlGroups = NO_GROUPS
) -> LocalSandbox:
    """Start a supervisor, in a group of `groups`, and wait until it takes commands. ToolFailed with
    its error output if it does not."""
    return await await_commands(_start(spec, limits, groups))


async def await_commands(making: Coroutine[None, None, S]) -> S:
    """Wait until a sandbox takes commands. ToolFailed with its error output if it does not."""
    starting = asyncio.ensure_future(making)  # noqa: TID251  # see below
    try:
        sandbox = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # half-way it could not be stopped: wait for its start first
        sandbox = await starting
        await sandbox.close()
        raise
    try:
        async with ambient.limit(SECONDS_TO_START):
            await asyncio.shield(sandbox.link.ready)
    except TimeoutError:
        pass
    except BaseException:
        await sandbox.close()
        raise
    if sandbox.link.gone.done() or not sandbox.link.ready.done():
        await sandbox.close()
        words = sandbox.said.decode("utf-8", "replace").strip().rpartition("\n")[2][:500]
        raise ToolFailed(f"The sandbox does not start: {words or 'it says nothing'}.")
    return sandbox


async def _start(spec: ProcessSpec, limits: SandboxLimits, groups: ControlGroups) -> LocalSandbox:
    group = await asyncio.to_thread(groups.open, limits)
    end_group = partial(groups.end, group)
    near, far = socket.socketpair()
    counters = group.open_counters()
    try:
        process = await asyncio.create_subprocess_exec(
            *group.entry,
            *choose_cpus(limits.cpus),
            *spec.argv,
            json.dumps(counters),
            stdin=far.fileno(),
            stdout=DEVNULL,
            stderr=PIPE,
            env=spec.env,
            cwd=spec.cwd,
            start_new_session=True,
            pass_fds=(*spec.inherited, *counters.values()),
        )
    except BaseException:
        near.close()
        await asyncio.to_thread(end_group)
        raise
    finally:
        far.close()
        for file in counters.values():
            os.close(file)
    near.setblocking(False)
    loop = asyncio.get_running_loop()
    _, link = await loop.create_unix_connection(lambda: Link(limits), sock=near)
    return LocalSandbox(link, process, end_group)


def find_shell() -> str:
    """The shell of this machine that runs commands."""
    return shutil.which("/bin/bash") or "/bin/sh"


def choose_cpus(count: int) -> tuple[str, ...]:
    """Return the words before a command that restrict it and its children to `count` processors;
    sandboxes are spread over them. () if there are no more, or that is unknown."""
    may, program = sorted(os.sched_getaffinity(0)), shutil.which("taskset")
    if program is None or len(may) <= count:
        return ()
    first = ambient.pick(len(may))
    chosen = (may[(first + one) % len(may)] for one in range(count))
    return (program, "-c", ",".join(map(str, chosen)))


def find_python() -> tuple[Path, Path]:
    """Return the interpreter of this process, outside of any venv, and the folder of its
    installation."""
    prefix = Path(sys.base_prefix).resolve()
    named = prefix / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    return (named if shutil.which(named) else Path(sys.executable).resolve()), prefix
