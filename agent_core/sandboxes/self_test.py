"""Tests whether a tier contains, by attempting what must be impossible inside.

It attempts to read and write a file outside, to query it and to change its mode and times, to read
a file with secrets in the workspace, to reach a port and Unix sockets of this machine, to go out,
to see another process, its environment and its memory, to end it, to make a namespace, to exceed
the limits, and to write where they do not hold. The other process exists only for this, and is of
the same user as commands: only the tier is in the way.
"""

import json
import os
import shlex
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.sandboxes.folders import NOBODY
from agent_core.sandboxes.link import SandboxLimits
from agent_core.sandboxes.owners import hold_trial
from agent_core.sandboxes.port import NetworkLoan, ProcessResult
from agent_core.sandboxes.tier import Leak, Tier
from agent_core.unix_sockets import bind_socket

_SECONDS = 30.0
PROBE_LIMITS = SandboxLimits(memory=96 << 20, processes=24)
# They last long enough to meet, however slowly each begins on a busy machine; a limit ends them.
_FORKS = "for n in $(seq 40); do sleep 20 & done; wait"
_TAKES = "{python} -c 'import time; x = bytearray(64 << 20); time.sleep(20)'"
_UNCOUNTED = ("/", "/etc", "/dev", "/home", "/opt", "/run", "/var", "/usr/local")
"""Folders whose files count to no sandbox: in one they may be in memory, without a size."""
_PROBE = """
import errno, json, os, signal, socket, sys
spec, leaks = json.loads(sys.argv[1]), []
def tries(name, act):
    try:
        if act() is not False: leaks.append(name)
    except OSError: pass
def connect(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as s:
        s.settimeout(2); s.connect(address)
def find_address(path):
    if len(os.fsencode(path)) <= 100: return path
    folder, _, name = path.rpartition("/")
    return f"/proc/self/fd/{os.open(folder, os.O_PATH)}/{name}"
def is_there():
    if not os.path.exists(f"/proc/{spec['pid']}"): return False
    try:
        with open(f"/proc/{spec['pid']}/stat") as f:
            return f.read().rpartition(")")[2].split()[19] == spec["born"]
    except PermissionError: return True
def read_environment():
    with open(f"/proc/{spec['pid']}/environ", "rb") as f:
        return spec["word"].encode() in f.read()
def limit():
    import resource
    return resource.prlimit(spec["pid"], resource.RLIMIT_STACK) is not None and is_there()
def peek():
    import ctypes
    libc, there = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(16)
    done = libc.process_vm_readv(spec["pid"], there, 1, there, 1, 0)
    return (done >= 0 or ctypes.get_errno() == errno.EFAULT) and is_there()
def take_own():
    os.rename(".turnkeeper", "trial"); os.rename("trial", ".turnkeeper")
def fill(place):
    open(place + "/trial", "w").close()
    os.unlink(place + "/trial")
tries("files", lambda: open(spec["file"]).close())
tries("files", lambda: open(spec["file"] + "-new", "w").close())
tries("files", lambda: os.chmod(spec["file"], 0o600))
tries("files", lambda: os.utime(spec["file"]))
tries("names", lambda: os.stat(spec["file"]))
tries("secrets", lambda: open(".env").close())
tries("network", lambda: connect(socket.AF_INET, ("127.0.0.1", spec["port"])))
tries("network", lambda: connect(socket.AF_INET, ("192.0.2.1", 9), socket.SOCK_DGRAM))
tries("sockets", lambda: connect(socket.AF_UNIX, find_address(spec["unix"])))
tries("sockets", lambda: connect(socket.AF_UNIX, chr(0) + spec["abstract"]))
tries("processes", is_there)
tries("environment", read_environment)
tries("memory", lambda: open(f"/proc/{spec['pid']}/mem", "rb").close() if is_there() else False)
tries("signals", limit)
tries("signals", lambda: os.kill(spec["pid"], signal.SIGTERM) if is_there() else False)
tries("copies", lambda: os.mkdir(".turnkeeper/trial"))
tries("copies", take_own)
for place in spec["places"]: tries("limits", lambda: fill(place))
if set(os.environ) - set(spec["env"]): leaks.append("environment")
try:
    tries("memory", peek)
    import ctypes
    if ctypes.CDLL(None).unshare(0x10000000) == 0: leaks.append("namespaces")
except ImportError: pass
print(json.dumps(sorted(set(leaks))))
"""


class ProbedPool(Protocol):
    """Sandboxes that are made for the test alone, with `PROBE_LIMITS`."""

    async def run(
        self, command: str, cwd: Path, limit: float, output: Callable[[str], None]
    ) -> ProcessResult: ...

    def lend_network(self, hosts: frozenset[str]) -> AbstractContextManager[NetworkLoan]: ...

    async def close(self) -> None: ...


@runtime_checkable
class TriesItself(Protocol):
    """A tier that runs no commands, and so is tried in its own way."""

    async def find_leaks(self, pool: ProbedPool) -> tuple[Leak, ...]: ...


async def find_leaks(pool: ProbedPool, tier: Tier) -> tuple[Leak, ...]:
    """Return what was reached inside of `pool`, in a fixed order; empty: its tier contains."""
    with hold_trial() as workspace, _bait() as bait:
        (workspace / ".env").write_text("WORD=secret\n")
        try:
            found = {
                *await _probe(pool, tier, workspace, bait),
                *await _find_loose_limits(pool, tier, workspace),
            }
        except (ToolFailed, OSError, msgspec.DecodeError):
            return ("start",)
        finally:
            await pool.close()
    known: tuple[Leak, ...] = Leak.__args__  # type: ignore[attr-defined]
    return tuple(one for one in known if one in found)


@contextmanager
def _bait() -> Iterator[dict[str, object]]:
    """Set the bait: a file, a port, two sockets, a process."""
    abstract = f"turnkeeper-{ambient.secret_id()}"
    with (
        hold_trial() as folder,
        socket.create_server(("127.0.0.1", 0)) as port,
        bind_socket(folder / "socket") as unix,
        socket.socket(socket.AF_UNIX) as nameless,
    ):
        os.chmod(folder, 0o777)  # noqa: S103  # so that only the sandbox prevents access
        file = folder / "bait"
        file.touch(0o666)
        file.chmod(0o666)
        os.chmod(f"{folder}/socket", 0o777)  # noqa: S103
        unix.listen()
        nameless.bind(f"\0{abstract}")
        nameless.listen()
        with _spawn_prey(abstract) as pid:
            born = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
            yield {
                "file": str(file), "port": port.getsockname()[1], "unix": f"{folder}/socket",
                "abstract": abstract, "pid": pid, "born": born, "word": abstract,
            }  # fmt: skip


@contextmanager
def _spawn_prey(word: str) -> Iterator[int]:
    """Start a process with `word` in its environment; as the user of commands, where that is
    another than ours and possible."""
    user = NOBODY if os.geteuid() == 0 else None
    try:
        process = _start_prey(word, user)
    except PermissionError:
        process = _start_prey(word, None)
    try:
        yield process.pid
    finally:
        process.communicate()


def _start_prey(word: str, user: int | None) -> "subprocess.Popen[bytes]":
    """Start a process that reads until its input ends."""
    groups: list[str | int] | None = [] if user is not None else None
    return subprocess.Popen(
        ("/bin/cat",),
        stdin=subprocess.PIPE,
        env={"WORD": word},
        user=user,
        group=user,
        extra_groups=groups,
        start_new_session=True,
    )


async def _probe(
    pool: ProbedPool, tier: Tier, workspace: Path, bait: dict[str, object]
) -> list[Leak]:
    lent = ("PWD", "SHLVL", "_", "OLDPWD", "LC_CTYPE")  # added by shell and interpreter
    with pool.lend_network(frozenset()) as loan:
        names = (*tier.build_env(workspace), *loan.env, *lent)
    places = () if tier.limit_holder == "itself" else _UNCOUNTED
    spec = json.dumps(bait | {"env": names, "places": places})
    words = f"exec {tier.python} -I -S -c {shlex.quote(_PROBE)} {shlex.quote(spec)}"
    done = await pool.run(words, workspace, _SECONDS, lambda _: None)
    found, _, _ = done.output.partition("\n")  # a message about a limit may follow
    return msgspec.json.decode(found.encode(), type=list[Leak])


async def _find_loose_limits(pool: ProbedPool, tier: Tier, workspace: Path) -> list[Leak]:
    """Check that a command that exceeds a limit is ended, with a message."""
    one = _TAKES.format(python=tier.python)  # no single one is too large
    takes = f"{one} & first=$!; {one} & wait $first && wait $!"  # a bare `wait` returns 0
    for command, reason in ((_FORKS, "processes"), (takes, "memory")):
        done = await pool.run(command, workspace, _SECONDS, lambda _: None)
        if PROBE_LIMITS.describe(reason) not in done.output:
            return ["limits"]
    return []
