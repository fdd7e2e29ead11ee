"""The tier of Monty: Python alone, in an interpreter that has no way out.

A supervisor of this machine runs one program in the place of a shell, which hands a file of code to
Monty's worker process and refuses all else (runner.py).
"""

import importlib.util
import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent_core.errors import ToolFailed
from agent_core.sandboxes.link import LimitHolder, SandboxLimits, SupervisorSpec
from agent_core.sandboxes.masks import NO_SECRETS, SecretFiles
from agent_core.sandboxes.owners import hold_trial
from agent_core.sandboxes.port import Language
from agent_core.sandboxes.self_test import ProbedPool
from agent_core.sandboxes.tier import (
    SUPERVISOR,
    Leak,
    LocalSandbox,
    ProcessSpec,
    TierUnusable,
    find_python,
    open_local,
)
from agent_core.tools import paths

_SECONDS = 20.0
_PROBE = """
import json
leaks = []
def tries(name, act):
    try:
        act()
        leaks.append(name)
    except Exception:
        pass
def load_socket():
    import socket
def load_processes():
    import subprocess
def fork():
    import os
    os.fork()
def kill():
    import os
    os.kill(PID, 9)
def peek():
    import ctypes
def grow():
    x = "x" * (2 << 30)
def climb():
    return climb()
tries("files", lambda: open(FILE).read())
tries("files", lambda: open("/etc/passwd").read())
tries("files", lambda: open("../../../../etc/passwd").read())
tries("network", load_socket)
tries("processes", load_processes)
tries("processes", fork)
tries("signals", kill)
tries("memory", peek)
import os
if len(os.environ): leaks.append("environment")
print(json.dumps(sorted(set(leaks))))
"""
_LOOSE = (
    "x = 'x' * (2 << 30)",
    "def climb():\n    return climb()\nclimb()",
    "while True:\n    pass",
)
_STOPPED = re.compile(r"MemoryError|RecursionError|TimeoutError|SIG|over ")
_LACKS = re.compile(
    r"ModuleNotFoundError|ImportError|NotImplementedError|AttributeError|NameError|SyntaxError"
)
_ADVICE = (
    "[This is Monty, a small Python: the language without yield, few modules (json, re, math, "
    "datetime, csv, pathlib, dataclasses, asyncio), no packages. Write it with these; what cannot "
    "be written so needs a sandbox by bubblewrap, Docker or Landlock, which an operator installs.]"
)


class MontyTier:
    """Monty's interpreter in a process of its own."""

    name = "monty"
    isolated = True
    about = (
        "Python alone, by Monty: a small interpreter without network, packages, commands and files "
        "but copies of those of the workspace that the code names, never of secret files "
        "(what it writes is gone when it ends); it has 256 MB of memory and 1,000 calls in depth."
    )
    cannot: frozenset[Leak] = frozenset()
    missing = ""
    max_processes = 4096
    masks = False
    limit_holder: LimitHolder = "itself"
    serves = False
    lists_processes = False
    programs: Mapping[Language, str] = {"python": "python3 -u"}
    python = "python3"

    @property
    def shell(self) -> tuple[str, ...]:
        """The runner, which runs code and nothing else."""
        return (sys.executable, "-I", "-B", "-m", "agent_core.sandboxes.monty.runner")

    def find_folder(self, workspace: Path) -> str:
        """Return the workspace itself."""
        return os.fspath(workspace)

    def build_env(self, workspace: Path) -> Mapping[str, str]:
        """See the port; these are the runner's variables, not the code's."""
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}

    def advise(self, output: str) -> str:
        """See the port."""
        return _ADVICE if _LACKS.search(output) else ""

    async def open(
        self,
        workspace: Path,
        limits: SandboxLimits,
        hidden: SecretFiles = NO_SECRETS,
        *,
        lasts: bool = True,
    ) -> LocalSandbox:
        """See the port."""
        spec = SupervisorSpec(limits=limits, folders=(os.fspath(workspace),))
        argv = (str(find_python()[0]), "-I", "-S", "-B", str(SUPERVISOR), spec.encode())
        env = dict(self.build_env(workspace))
        return await open_local(ProcessSpec(argv=argv, env=env, cwd=workspace), limits)

    async def find_leaks(self, pool: ProbedPool) -> tuple[Leak, ...]:
        """Return what code reached that tried, and whether excessive code was not ended."""
        with hold_trial() as workspace:
            try:
                given = f"PID = {os.getpid()}\nFILE = {__file__!r}\n"
                output = await _run(pool, workspace, given + _PROBE)
                found = set(msgspec.json.decode(output.encode(), type=list[Leak]))
                for code in _LOOSE:
                    output = await _run(pool, workspace, code, 2.0)
                    if output and not _STOPPED.search(output):
                        found.add("limits")
            except (ToolFailed, OSError, msgspec.DecodeError):
                return ("start",)
            finally:
                await pool.close()
        return tuple(sorted(found))


def find_monty() -> MontyTier:
    """Return the tier, if the extra is installed. TierUnusable."""
    if importlib.util.find_spec("pydantic_monty") is None:
        raise TierUnusable("it needs the extra monty: pip install 'turnkeeper[monty]'")
    return MontyTier()


async def _run(pool: ProbedPool, workspace: Path, code: str, limit: float = _SECONDS) -> str:
    """Return the code's output."""
    name = f"{paths.OWN}/code/probe.py"
    paths.put_file(workspace, Path(os.path.realpath(workspace)) / name, code.encode(), 0o644)
    words = f"PYTHONPATH=. exec python3 -u {shlex.quote(name)}"
    return (await pool.run(words, workspace, limit, lambda _: None)).output
