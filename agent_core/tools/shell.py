"""The tool run_command: a shell command in the workspace, by the sandbox that there is."""

import os
import re
import shlex
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from agent_core.errors import ToolFailed
from agent_core.messages import NO_OUTPUT, CommandResult, ToolOutput
from agent_core.sandboxes.commands.background import DEATH, Background, BackgroundCommand
from agent_core.sandboxes.port import Permits, ProcessResult, Sandbox
from agent_core.sandboxes.secrets import NoSecrets, Secrets
from agent_core.tools import paths
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.globs import Glob
from agent_core.tools.shell_reading.mentions import names_secret
from agent_core.tools.sources import HOME, TMP
from agent_core.tools.tool_settings import MAX_SECONDS
from agent_core.tools.web.host_field import HostNames

MAX_LIMIT = MAX_SECONDS.default
LIMIT = 30
"""Seconds that a command gets that says nothing."""
WAY_ON = "[`timeout` gives a command more seconds; `background` is for what goes on.]"
MAX_TAIL = 6_000
"""Characters of the newest output that are shown of a command that still runs."""
MAX_COMMAND = 100_000
"""Characters; Linux takes 128 KiB as one argument."""
_MAX_FILES = 200
_MAX_FOLDERS, _MAX_PATTERNS = 8, 20
_WILD = re.compile(r"[*?\[]")
_IN_SANDBOX = re.compile(r"(?:(/tmp|TMPDIR|\{TMPDIR\})|~|/home/user|HOME|\{HOME\})/(?=.)")
"""A path of the sandbox's /tmp or HOME, as words of a command begin that were parted at `$`."""
_MAX_HASHED = 32_000_000
"""Bytes; of a larger file the approval is bound to size and time of change."""


class RunCommandArguments(BaseModel):
    """Arguments of run_command."""

    command: str = Field(min_length=1, max_length=MAX_COMMAND)
    timeout: int = Field(default=LIMIT, ge=1, description="Seconds.")
    background: bool = Field(default=False, description="Return a handle at once.")
    hosts: HostNames = ()
    cwd: str = Field(default="", max_length=1_000, description="To run it in.")


class CheckCommandArguments(BaseModel):
    """Arguments of check_command."""

    handle: str
    action: Literal["read", "wait", "stop"] = "read"
    seconds: int = Field(default=LIMIT, ge=1, description="To wait at most.")


def command_tools(
    sandbox: Sandbox,
    background: Background,
    limit: int = MAX_LIMIT,
    secrets: Secrets | None = None,
) -> tuple[Tool, ...]:
    """run_command and check_command. `limit`: seconds that a command may take at most."""
    return shell_tool(sandbox, background, limit, secrets), check_tool(background, limit)


def shell_tool(
    sandbox: Sandbox,
    background: Background,
    limit: int = MAX_LIMIT,
    secrets: Secrets | None = None,
) -> Tool:
    """Make run_command in `sandbox`; its description tells the sandbox's isolation."""

    async def call(wanted: RunCommandArguments, context: ToolContext) -> ToolOutput:
        said = "timeout" in wanted.model_fields_set
        env = (secrets or NoSecrets()).lend(context.workspace, wanted.command)
        place, hosts = context.workspace, context.hosts.union(wanted.hosts)
        reveals = names_secret(wanted.command)  # otherwise it would not have been asked about
        permits = Permits(env=env, hosts=hosts, reveals=reveals)
        command = enter_folder(place, wanted.cwd, wanted.command)
        if wanted.background:
            most = min(wanted.timeout, limit) if said else limit
            handle = await background.start(sandbox, command, place, most, permits)
            text = (
                f"Started in the background as {handle}, for at most {most} s. "
                "See to it by check_command; it ends with the gateway."
            )
            return ToolOutput(text=text, command=CommandResult(handle=handle))
        most = min(wanted.timeout, limit)
        done = await sandbox.run(command, place, most, context.output, permits)
        return report(done, most, hint=WAY_ON if most < limit else "")

    return Tool(
        name="run_command",
        description=f"Run a shell command in the workspace. At most {limit} s; what goes on, "
        f"such as a server, in the background. {sandbox.about}",
        arguments=RunCommandArguments,
        repetition="effect",
        access="shell",
        call=call,
        bind=bind,
        limit=float(limit),
        isolated=sandbox.isolated,
    )


def enter_folder(workspace: Path, cwd: str, command: str) -> str:
    """Return `command` in the folder `cwd` of the workspace. ToolFailed if that is none, or leads
    out."""
    if not cwd:
        return command
    real = paths.resolve(workspace, cwd)
    if not paths.is_folder(workspace, real):
        raise ToolFailed(f"There is no folder {cwd} in the workspace.")
    inner = os.path.relpath(real, os.path.realpath(workspace))
    return f"cd -- {shlex.quote(inner)} || exit\n{command}"


def check_tool(background: Background, limit: int = MAX_LIMIT) -> Tool:
    """Make check_command: asks about a background command, or ends it. Pure, though it may end a
    command: after a crash it meets a gateway without commands."""

    async def call(wanted: CheckCommandArguments, context: ToolContext) -> ToolOutput:
        command = background.find(context.workspace, wanted.handle)
        if command is None:
            raise ToolFailed(
                f"There is no command {wanted.handle!r}. Either it ended long ago, or the gateway "
                "was restarted since: then the process is gone. Start it again if it is needed."
            )
        if wanted.action == "stop":
            command.stop()
            await command.wait(DEATH)
        elif wanted.action == "wait":
            await command.wait(min(wanted.seconds, limit + 1))
        return _state(wanted.handle, command)

    return Tool(
        name="check_command",
        description="Read the output of a command in the background, wait for its end, or stop it.",
        arguments=CheckCommandArguments,
        repetition="pure",
        access="read",
        polls=True,
        call=call,
        limit=limit + DEATH,
    )


def bind(wanted: RunCommandArguments, workspace: Path) -> str:
    """Bind an approval to the working folder, the environment's names, and the content of each
    workspace file that the command names, so that an approved script cannot be swapped."""
    command = f"cd {shlex.quote(wanted.cwd)}; {wanted.command}" if wanted.cwd else wanted.command
    files = dict(islice(_digest_named_files(command, workspace), _MAX_FILES))
    lines = (f"{digest} {name}" for name, digest in sorted(files.items()))
    return "\n".join((os.path.realpath(workspace), "PATH HOME LANG", *lines))


def _digest_named_files(command: str, workspace: Path) -> Iterator[tuple[str, str]]:
    """(name, digest) of the files that the command may name, each once, and where a name leads by
    links: another folder may be in its place by then."""
    words = [inner for word in _words(command) if (inner := _read_inner_path(word))]
    root = Path(os.path.realpath(workspace))
    places = dict.fromkeys(os.path.normpath(word) for word in words)
    there = (place for place in places if paths.is_folder(workspace, root / place))
    starts = ("", *islice(there, _MAX_FOLDERS))
    named = dict.fromkeys(
        os.path.normpath(os.path.join(one, word)) for word in words for one in starts
    )
    wild = [name for name in named if _WILD.search(name)]
    plain = [name for name in named if not _WILD.search(name)]
    for name in dict.fromkeys((*plain, *(_matches(wild, workspace) if wild else ()))):
        digest, lead = paths.digest(workspace, name, _MAX_HASHED), _find_lead(root, name)
        if digest or lead:
            yield paths.display_path(name), digest + lead


def _find_lead(root: Path, name: str) -> str:
    """Where a name leads by links, "" if it is the place itself."""
    try:
        real = os.path.realpath(root / name)
    except (OSError, ValueError):
        return ""
    return "" if real == os.path.normpath(root / name) else f" at {paths.display_path(real)}"


def _read_inner_path(word: str) -> str:
    """Return the word as a path of the workspace, "" if it is none. A pattern may be longer than
    any name that it fits."""
    if (kept := _IN_SANDBOX.match(word)) and ".." not in word.split("/"):
        return f"{TMP if kept[1] else HOME}/{word[kept.end() :]}"
    inner = paths.locate_inside(word)
    if not paths.leaves(word):
        return inner
    outside = inner.startswith(("/", "~")) or ".." in inner.split("/")
    return "**" if _WILD.search(inner) and not outside else ""


def _words(command: str) -> list[str]:
    """Return all words that may be a file's name, quoted or inside of another shell's command."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    return list(dict.fromkeys((*words, *re.split(r"[\s;|&<>()'\"`=$]+", command))))


def _matches(patterns: list[str], workspace: Path) -> list[str]:
    """Return the files that a shell may expand the patterns to. More, or wilder ones, than can be
    checked stand for all files."""
    try:
        globs = [
            Glob(_flatten_pattern(pattern), classes=True) for pattern in patterns[:_MAX_PATTERNS]
        ]
    except ToolFailed:
        globs = []
    if not globs or len(patterns) > _MAX_PATTERNS:
        globs = [Glob("**")]
    depth = max(glob.depth for glob in globs)
    entries = paths.walk(workspace, Path(os.path.realpath(workspace)), depth)
    names = (entry.path for entry in entries)
    return sorted(islice((n for n in names if any(g.fits(n) for g in globs)), _MAX_FILES))


def _flatten_pattern(pattern: str) -> str:
    """Return a pattern with at most one `**` that matches everything that `pattern` does, and
    perhaps more."""
    parts = pattern.split("/")
    deep = [n for n, part in enumerate(parts) if set(part) == {"*"} and len(part) > 1]
    if deep:
        parts[deep[0] : deep[-1] + 1] = ["**"]
    return "/".join(parts)


def _state(handle: str, command: BackgroundCommand) -> ToolOutput:
    """Return the whole output of an ended command, the newest of a running one."""
    if (done := command.done) is not None:
        return report(done, command.limit, command.stopped)
    output = command.output()
    tail = output[-MAX_TAIL:]
    if len(output) > MAX_TAIL:  # a truncated line could show half a secret
        tail = tail.partition("\n")[2] or tail
    left = len(output) - len(tail)
    cut = f"[… {left} characters before this]\n" if left > 0 else ""
    head = f"{handle} has been running for {command.age:.0f} s of at most {command.limit:g} s."
    text = f"{head}\n{cut}{tail or '(no output yet)'}"
    return ToolOutput(text=text, command=CommandResult(handle=handle))


def report(done: ProcessResult, limit: float, stopped: bool = False, hint: str = "") -> ToolOutput:
    """Report a command's output and its end; `hint`: what to do after a timeout."""
    body = done.output.rstrip()
    if done.timed_out or stopped:
        command = CommandResult(stopped=limit if done.timed_out else 0.0, written=len(body))
    else:
        command = CommandResult(exit_code=done.exit_code, written=len(body))
    said = [body or NO_OUTPUT, hint if done.timed_out else "", command.describe_end()]
    return ToolOutput(text="\n".join(filter(None, said)), command=command)
