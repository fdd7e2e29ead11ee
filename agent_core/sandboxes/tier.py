"""What a tier knows of making a sandbox; how one is started as a process of this machine."""

import asyncio
import os
import shutil
import signal
import socket
import sys
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Literal, Protocol, TypeVar

from msgspec import Struct

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.sandboxes import supervisor
from agent_core.sandboxes.link import Link, SandboxLimits
from agent_core.sandboxes.masks import NO_SECRETS, SecretFiles
from agent_core.sandboxes.port import Language

SECONDS_TO_START = 20.0
"""Until a new sandbox takes commands."""
SECONDS_TO_DIE = 5.0
Leak = Literal[
    "files", "network", "sockets", "processes", "environment", "memory", "signals", "namespaces",
    "copies", "limits", "start",
]  # fmt: skip
"""What was within reach of what ran inside; `copies`: what the gateway keeps of the workspace, in
it; `start`: nothing could be tried."""
SUPERVISOR = Path(__file__).with_name("supervisor.py")


class FileCarrier(Protocol):
    """Carries a workspace's files to a sandbox that is elsewhere, and back. SandboxGone where
    there is no sandbox any more, ToolFailed where they cannot be carried."""

    async def send(self) -> None:
        """Before a command: what the workspace's files became."""

    async def fetch(self, command: str) -> str:
        """After the command: what it made of them; what a model has to be told of that."""


class OpenSandbox(Protocol):
    """A sandbox that takes commands."""

    @property
    def link(self) -> Link:
        """The way to its supervisor."""

    @property
    def carrier(self) -> FileCarrier | None:
        """What carries files; None where commands work in the workspace itself."""

    @property
    def note(self) -> str:
        """What the first command's result has to say of what became of the one before; "" if the
        pool knows best."""

    async def save(self) -> None:
        """Keep what is in it besides the workspace, where the workspace's folder has it not."""

    async def close(self) -> None:
        """End it with all that runs inside, and see it gone."""


class ToldSandbox(OpenSandbox, Protocol):
    """A sandbox that keeps what its supervisor complained of."""

    @property
    def said(self) -> bytes:
        """What that was, known when it is closed."""


S = TypeVar("S", bound=ToldSandbox)


class TierUnusable(Exception):
    """The tier that was asked for does not work here; the text says why."""


class Tier(Protocol):
    """A way of keeping what runs apart from the rest of the machine."""

    @property
    def name(self) -> str:
        """As settings and /health call it."""

    @property
    def isolated(self) -> bool:
        """Nothing outside of the sandbox can be reached or changed."""

    @property
    def about(self) -> str:
        """What it does and does not, in one sentence for people and models."""

    @property
    def missing(self) -> str:
        """What to install so that anything runs at all; "" where it does."""

    @property
    def max_processes(self) -> int:
        """What RLIMIT_NPROC is set to: it counts all processes of a user, in a user namespace."""

    @property
    def cannot(self) -> frozenset[Leak]:
        """What it is known not to keep out of reach, and says so in `about`."""

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
        """Where the workspace is inside."""

    def build_env(self, workspace: Path) -> Mapping[str, str]:
        """What commands find in their environment."""

    def advise(self, output: str) -> str:
        """What to do otherwise here, for who failed and wrote `output` last; "" if nothing."""

    @property
    def masks(self) -> bool:
        """It can hide files of the workspace."""

    @property
    def serves(self) -> bool:
        """What runs in it can listen at a port, which is reached from outside by the link."""

    async def open(
        self,
        workspace: Path,
        limits: SandboxLimits,
        hidden: SecretFiles = NO_SECRETS,
        *,
        lasts: bool = True,
    ) -> OpenSandbox:
        """Make a sandbox around a workspace, in which the files `hidden` are empty if the tier can
        hide them. `lasts`: what is in it besides is kept for the next one. ToolFailed if it cannot
        be."""


class ProcessSpec(Struct, frozen=True, kw_only=True):
    """What to start. `env` is all of its environment; `inherited`: open files that it gets."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: Path
    inherited: tuple[int, ...] = ()


class LocalSandbox:
    """A sandbox whose supervisor is a process of this machine, at the other end of its input."""

    carrier = None
    note = ""

    def __init__(self, link: Link, process: asyncio.subprocess.Process) -> None:
        self._link, self._process = link, process
        self.said = b""
        """What it complained of, known when it is closed."""

    @property
    def link(self) -> Link:
        return self._link

    async def save(self) -> None:
        """As the port says: HOME and /tmp are in the workspace's folder."""

    async def close(self) -> None:
        """As the port says; it ends by itself when its socket does, and is killed if not."""
        self._link.close()
        try:
            async with ambient.limit(SECONDS_TO_DIE):
                _, self.said = await self._process.communicate()
        except TimeoutError:
            for pid in reversed(supervisor.list_alive(self._process.pid)):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            _, self.said = await self._process.communicate()


async def open_local(spec: ProcessSpec, limits: SandboxLimits) -> LocalSandbox:
    """Start a supervisor, and wait until it takes commands. ToolFailed with what it said if not."""
    return await await_commands(_start(spec, limits))


async def await_commands(making: Coroutine[None, None, S]) -> S:
    """Wait for a sandbox until it takes commands. ToolFailed with what it said if it does not."""
    starting = asyncio.ensure_future(making)  # noqa: TID251  # see below
    try:
        sandbox = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # half-way it could not be ended: it is seen to its beginning first
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


async def _start(spec: ProcessSpec, limits: SandboxLimits) -> LocalSandbox:
    near, far = socket.socketpair()
    try:
        process = await asyncio.create_subprocess_exec(
            *choose_cpus(limits.cpus),
            *spec.argv,
            stdin=far.fileno(),
            stdout=DEVNULL,
            stderr=PIPE,
            env=spec.env,
            cwd=spec.cwd,
            start_new_session=True,
            pass_fds=spec.inherited,
        )
    except BaseException:
        near.close()
        raise
    finally:
        far.close()
    near.setblocking(False)
    loop = asyncio.get_running_loop()
    _, link = await loop.create_unix_connection(lambda: Link(limits), sock=near)
    return LocalSandbox(link, process)


def find_shell() -> str:
    """The shell of this machine that runs commands."""
    return shutil.which("/bin/bash") or "/bin/sh"


def choose_cpus(count: int) -> tuple[str, ...]:
    """The words before a command that give it, and all that it starts, `count` of the processors;
    sandboxes are spread over them. None where there are no more, or nobody can say so."""
    may, program = sorted(os.sched_getaffinity(0)), shutil.which("taskset")
    if program is None or len(may) <= count:
        return ()
    first = ambient.pick(len(may))
    chosen = (may[(first + one) % len(may)] for one in range(count))
    return (program, "-c", ",".join(map(str, chosen)))


def find_python() -> tuple[Path, Path]:
    """The interpreter that this process runs on, outside of any venv, and the folder of its
    installation."""
    prefix = Path(sys.base_prefix).resolve()
    named = prefix / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    return (named if shutil.which(named) else Path(sys.executable).resolve()), prefix
