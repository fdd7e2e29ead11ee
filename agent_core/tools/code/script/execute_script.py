"""The tool execute_script: Python that calls tools, by the module `turnkeeper`.

Each call of a script is a call of its own: judged, asked about, journaled, with the facts of its
time. The script is an effect: after an interruption it is not run again, and the model is told
which of its calls went through.
"""

import asyncio
import json
import os
import pkgutil
import shlex
import stat
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, Field

from agent_core.errors import Parked, ToolFailed
from agent_core.messages import CommandResult, ToolOutput
from agent_core.sandboxes.commands.output import DRAIN
from agent_core.sandboxes.port import ChannelSandbox, Permits, ProcessResult, Sandbox
from agent_core.tools import paths, secret_files, shell
from agent_core.tools.code import execute
from agent_core.tools.code.script.running import MAX_CALLS, TOOLS, RunningScript, RunningScripts
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.web.host_field import HostNames

NAME = "execute_script"
MAX_NAMED = 100
"""Files that the result names."""
_DEEPEST = 12


class ScriptArguments(BaseModel):
    """Arguments of execute_script."""

    code: str = Field(min_length=1, description="Python.")
    timeout: int = Field(
        default=shell.LIMIT, ge=1, description="Seconds, without those that a person takes."
    )
    hosts: HostNames = ()


def script_tools(sandbox: Sandbox, scripts: RunningScripts, limit: int) -> tuple[Tool, ...]:
    """execute_script, where the sandbox has Python and a way to talk. `limit`: seconds that a
    script may take."""
    channels = sandbox.channels
    if channels is None or "python" not in sandbox.programs:
        return ()
    runner = _Runner(channels, scripts, limit, sandbox.programs["python"])
    tool = Tool(
        name=NAME,
        description="Run a Python script in the workspace that calls tools itself, for work of "
        "many calls: `from turnkeeper import " + ", ".join(TOOLS) + ", ToolError`; each returns "
        f"the tool's text, and has its parameters. At most {MAX_CALLS} calls and {limit} s. "
        "Interrupted, it is not run again: you are told which calls it made. "
        f"{sandbox.about}",
        summary="a Python script that calls tools",
        arguments=ScriptArguments,
        repetition="effect",
        access="shell",
        call=runner.call,
        bind=execute.bind,
        limit=float(limit),
        isolated=sandbox.isolated,
        holder=scripts,
    )
    return (tool,)


class _Runner:
    def __init__(
        self, channels: ChannelSandbox, scripts: RunningScripts, limit: int, python: str
    ) -> None:
        self._channels, self._scripts = channels, scripts
        self._limit, self._python = limit, python

    async def call(self, wanted: ScriptArguments, context: ToolContext) -> ToolOutput:
        """Run the script, or go on with the one that waited for a person."""
        most = min(wanted.timeout, self._limit)
        script = self._scripts.take(context.key) or await self._start(wanted, context, most)
        script.command.show(context.output)
        try:
            await script.serve(context.invoke)
            done = await script.command.wait(most + DRAIN)
        except Parked:
            self._scripts.hold(context.key, script)
            raise
        except BaseException:
            script.command.kill()
            raise
        if done is None:
            script.command.kill()
            done = await script.command.wait(DRAIN)
        created = await asyncio.to_thread(_list_created, context.workspace, script.files)
        return _report(script, done, most, created)

    async def _start(
        self, wanted: ScriptArguments, context: ToolContext, most: int
    ) -> RunningScript:
        try:
            given = json.dumps({"script": wanted.code, "library": _read("library.py")})
            wanted.code.encode()
        except UnicodeEncodeError:
            raise ToolFailed("The script has half of a character pair; write it again.") from None
        files = await asyncio.to_thread(_list_files, context.workspace)
        words = f"exec {self._python} -c {shlex.quote(_read('launch.py'))}"
        hosts = context.hosts.union(wanted.hosts)
        permits = Permits(hosts=hosts, reveals=secret_files.names_secret(wanted.code))
        command = await self._channels.start_talking(words, context.workspace, most, permits)
        script = RunningScript(command, files)
        try:
            await command.channel.write(given.encode() + b"\n")
        except BaseException:
            command.kill()
            raise
        return script


@lru_cache(maxsize=2)
def _read(name: str) -> str:
    """A program of this folder that runs inside."""
    return (pkgutil.get_data(__package__, name) or b"").decode()


def _list_files(workspace: Path) -> frozenset[str]:
    root = Path(os.path.realpath(workspace))
    entries = paths.walk(workspace, root, _DEEPEST)
    return frozenset(entry.path for entry in entries if stat.S_ISREG(entry.info.st_mode))


def _list_created(workspace: Path, before: frozenset[str]) -> list[str]:
    """Return the new files; none if there are too many to list."""
    if len(before) >= paths.MAX_ENTRIES:
        return []
    return [paths.display_path(one) for one in sorted(_list_files(workspace) - before)]


def _report(
    script: RunningScript, done: ProcessResult | None, limit: int, created: list[str]
) -> ToolOutput:
    """Report the script's output and files to the model as JSON."""
    ended = done is not None and not done.timed_out
    code = done.exit_code if done is not None and ended else None
    stdout = done.output if done is not None else script.command.output()
    stderr = script.command.errors()
    result: dict[str, object] = {"success": code == 0, "exit_code": code}
    if not ended:
        result["stopped"] = f"after {limit} s"
    more = len(created) - MAX_NAMED
    result["created_files"] = created[:MAX_NAMED] + ([f"… and {more} more"] if more > 0 else [])
    text = json.dumps({**result, "stdout": stdout, "stderr": stderr}, ensure_ascii=False)
    written = len(text) if stdout or stderr else 0
    command = CommandResult(
        exit_code=code, stopped=None if ended else float(limit), written=written
    )
    words = (stdout.rstrip(), stderr.rstrip(), command.describe_end())
    return ToolOutput(
        text=text,
        shown="\n".join(filter(None, words)),
        command=command,
        changed=tuple(created[:MAX_NAMED]),
    )
