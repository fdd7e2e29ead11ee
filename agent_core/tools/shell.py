"""The tool run_command: a shell command in the workspace, by the sandbox that there is."""

import hashlib
import os
import re
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, Field

from agent_core.sandboxes.port import Done, Sandbox
from agent_core.tools import paths
from agent_core.tools.contract import Tool, ToolContext

MAX_LIMIT = 600
_MAX_FILES = 200
_MAX_HASHED = 32_000_000
"""Bytes; of a larger file the approval is bound to size and time of change."""


class Run(BaseModel):
    """Arguments of run_command."""

    command: str = Field(min_length=1)
    timeout: int = Field(default=30, ge=1, le=MAX_LIMIT, description="Seconds.")


def shell_tool(sandbox: Sandbox) -> Tool:
    """run_command in `sandbox`; what it says of isolation is what the sandbox says."""

    async def call(arguments: BaseModel, context: ToolContext) -> str:
        wanted = Run.model_validate(arguments, from_attributes=True)
        limit = min(float(wanted.timeout), context.limit)
        done = await sandbox.run(wanted.command, context.workspace, limit, context.output)
        return _report(done, limit)

    return Tool(
        name="run_command",
        description=f"Run a shell command in the workspace. {sandbox.about}",
        arguments=Run,
        repetition="effect",
        access="shell",
        call=call,
        bind=bind,
        limit=float(MAX_LIMIT),
        isolated=sandbox.isolated,
    )


def bind(arguments: BaseModel, workspace: Path) -> str:
    """The working folder, the names in the environment, and the content of each file of the
    workspace that the command names, so that an approved script cannot be swapped."""
    command = Run.model_validate(arguments, from_attributes=True).command
    files = dict(list(_named(command, workspace))[:_MAX_FILES])
    lines = (f"{digest} {name}" for name, digest in sorted(files.items()))
    return "\n".join((os.path.realpath(workspace), "PATH HOME LANG", *lines))


def _named(command: str, workspace: Path) -> Iterator[tuple[str, str]]:
    words = [paths.inside(word) for word in _words(command) if not paths.leaves(word)]
    folders = [word for word in words if (workspace / word).is_dir()][:8]
    for word in words:
        for start in ("", *folders):
            for name in _matches(os.path.normpath(os.path.join(start, word)), workspace):
                digest = _digest(name, workspace)
                if digest:
                    yield name, digest


def _words(command: str) -> list[str]:
    """All that may be a file's name, quoted or inside of another shell's command."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    return list(dict.fromkeys((*words, *re.split(r"[\s;|&<>()'\"`=$]+", command))))


def _matches(name: str, workspace: Path) -> list[str]:
    if not re.search(r"[*?\[]", name):
        return [name]
    try:
        found = sorted(workspace.glob(name))[:_MAX_FILES]
    except (ValueError, OSError):
        return []
    return [str(path.relative_to(workspace)) for path in found]


def _digest(name: str, workspace: Path) -> str:
    """SHA-256 of the file's content, secrets too: only the digest is kept. "" if it is no file."""
    real = os.path.realpath(workspace / name)
    if not Path(real).is_relative_to(os.path.realpath(workspace)):
        return f"leads to {real}"
    try:
        descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    info = os.fstat(descriptor)
    if not stat.S_ISREG(info.st_mode):
        os.close(descriptor)
        return ""
    with open(descriptor, "rb") as file:
        if info.st_size > _MAX_HASHED:
            return f"{info.st_size} bytes, {info.st_mtime_ns}"
        return hashlib.file_digest(file, "sha256").hexdigest()


def _report(done: Done, limit: float) -> str:
    end = f"[stopped after {limit:g} s]" if done.timed_out else f"[exit code {done.exit_code}]"
    return f"{done.output.rstrip() or '(no output)'}\n{end}"
