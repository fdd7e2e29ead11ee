"""The tool bash: a lasting shell with its folder, variables and functions.

It is in memory. Only its folder is stored: a new shell begins there, and the model is told that it
is new.
"""

import asyncio
import os
import shlex
from pathlib import Path

from msgspec.structs import replace
from pydantic import BaseModel, Field

from agent_core.errors import ToolFailed
from agent_core.messages import ToolOutput
from agent_core.sandboxes.commands.shells import Shells, WorkspaceShell
from agent_core.sandboxes.port import Sandbox
from agent_core.sandboxes.secrets import NoSecrets, Secrets
from agent_core.tools import shell as shell_tool
from agent_core.tools.code.readonly import readonly_verbs
from agent_core.tools.code.shell_state import ShellPlace, locate_within, recall, remember
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.web.host_field import HostNames

IDLE = 1_800.0
"""Seconds without a command after which a shell is ended."""
_QUICK = 2.0
"""Seconds that the shell gets to go to a folder."""
_LOOK = "top=$(pwd -P); cd -- {folder} || exit\n{command}\n"
_MOVED = 'code=$?; printf \'\\0%s\\0%s\\0\' "$top" "$(pwd -P)"; exit $code'
_RESTARTED = "The next command gets a new shell, in the workspace's folder."
_OUTSIDE = (
    "Not run: the shell is in {folder}, outside of the workspace, where a command that only looks "
    "is not run without asking. Go back by cd, or write it as: bash -c '…'"
)
_ENDED = "The shell ended with this command; the next one gets a new shell."


class BashArguments(BaseModel):
    """Arguments of bash."""

    command: str = ""
    timeout: int = Field(default=shell_tool.LIMIT, ge=1, description="Seconds.")
    restart: bool = Field(default=False, description="Begin with a new shell.")
    hosts: HostNames = ()


class Bash:
    """The shells of a sandbox, as tools use them. `limit`: seconds of a command at most."""

    def __init__(
        self, sandbox: Sandbox, shells: Shells, limit: int, secrets: Secrets | None = None
    ) -> None:
        self.sandbox, self.shells, self.limit = sandbox, shells, limit
        self._secrets: Secrets = secrets or NoSecrets()

    async def run(
        self, wanted: BashArguments, context: ToolContext, shell: WorkspaceShell
    ) -> ToolOutput:
        """Run the call; the caller holds the shell."""
        place = await asyncio.to_thread(recall, context.workspace)
        if wanted.restart:
            shell.end()
            self.shells.take_reason(context.workspace)
            place = await _keep(context, place, ShellPlace())
        if not wanted.command.strip():
            if wanted.restart:
                return ToolOutput(text=_RESTARTED)
            raise ToolFailed("Give a command, or restart.")
        if self.sandbox.isolated and (verbs := readonly_verbs(wanted.command)):
            return await self._look(wanted, context, shell, "cd" in verbs)
        news = "" if shell.alive else await self._open(context, shell, place)
        told = await self._run_in_shell(wanted, context, shell)
        news += self.sandbox.take_lost(context.workspace)
        if not news or told.command is None:
            return replace(told, text=news + told.text)
        command = replace(told.command, written=told.command.written + len(news))
        return replace(told, text=news + told.text, command=command)

    async def _look(
        self, wanted: BashArguments, context: ToolContext, shell: WorkspaceShell, moves: bool
    ) -> ToolOutput:
        """Run a read-only command beside the shell, in its folder."""
        if shell.alive and not locate_within(shell.folder, shell.top):
            raise ToolFailed(_OUTSIDE.format(folder=shell.folder))
        place = await asyncio.to_thread(recall, context.workspace)
        words = _LOOK.format(folder=shlex.quote(place.folder), command=wanted.command)
        live = _show_nothing if moves else context.output
        most = min(wanted.timeout, self.limit)
        words += _MOVED if moves else ""
        done = await self.sandbox.run(words, context.workspace, most, live)
        if moves and done.output.count("\0") >= 3:
            output, top, folder, cut = done.output.rsplit("\0", 3)
            done = replace(done, output=output + cut)
            now = locate_within(folder, top) or place.folder
            await _keep(context, place, replace(place, folder=now))
        return shell_tool.report(done, most)

    async def _open(self, context: ToolContext, shell: WorkspaceShell, place: ShellPlace) -> str:
        """Open a new shell; return a note about it for the model."""
        unknown = "the gateway was started anew" if shell.session is None else "its sandbox ended"
        await self.shells.open(shell, self.sandbox, context.workspace, self.limit)
        why = self.shells.take_reason(context.workspace) or unknown
        lost = place.folder != "." and not await _go(shell, place.folder)
        now = "." if lost else place.folder
        await _keep(context, place, ShellPlace(folder=now, opened=True))
        if lost:
            return f"[A new shell, in the workspace's folder: {place.folder} is gone.]\n"
        if not place.opened:
            return ""
        return (
            f"[A new shell, in {now}: the one before is gone ({why}), with its variables, "
            "functions and background jobs.]\n"
        )

    async def _run_in_shell(
        self, wanted: BashArguments, context: ToolContext, shell: WorkspaceShell
    ) -> ToolOutput:
        """Run the command in the shell."""
        place = await asyncio.to_thread(recall, context.workspace)
        if locate_within(shell.folder, shell.top) not in ("", place.folder):
            await _go(shell, place.folder)  # only a read-only command changed to it
        assert shell.session is not None
        env = self._secrets.lend(context.workspace, wanted.command)
        most = min(wanted.timeout, self.limit)
        shell.commands += 1
        with self.sandbox.lend_network(context.hosts.union(wanted.hosts)) as loan:
            try:
                ran = await shell.session.run(
                    wanted.command, most, context.output, {**loan.env, **env}
                )
            except asyncio.CancelledError:
                self.shells.note(context.workspace, "it was stopped")
                raise
            if refused := loan.describe_refused(ran.done):
                told = f"{ran.done.output.rstrip()}\n{refused}\n".lstrip()
                ran = replace(ran, done=replace(ran.done, output=told))
        if not shell.alive:
            self.shells.note(context.workspace, f"it ended with: {wanted.command[:80]}")
            end = "" if ran.done.timed_out else f"\n[{_ENDED}]"
            return shell_tool.report(replace(ran.done, output=ran.done.output.rstrip() + end), most)
        shell.folder = ran.folder
        now = locate_within(ran.folder, shell.top) or place.folder
        await _keep(context, place, replace(place, folder=now))
        return shell_tool.report(ran.done, most)


def bash_tool(bash: Bash, name: str = "bash", idle: float = IDLE) -> Tool:
    """bash, or the same under another name and with another patience."""

    def bind_all(wanted: BashArguments, workspace: Path) -> str:
        known = bash.shells.describe(workspace)
        return "\n".join(filter(None, (bind(wanted, workspace), known)))

    async def call(wanted: BashArguments, context: ToolContext) -> ToolOutput:
        async with bash.shells.hold(context.workspace, idle) as shell:
            try:
                return await bash.run(wanted, context, shell)
            finally:
                bash.sandbox.end_when_idle(context.workspace, idle)

    return Tool(
        name=name,
        description="Run a command in a shell that stays: its folder, variables, functions and "
        "background jobs are there at the next call. A command that takes longer than its timeout "
        f"(at most {bash.limit} s) ends the shell. {bash.sandbox.about}",
        summary="a shell that stays",
        arguments=BashArguments,
        repetition="effect",
        access="shell",
        call=call,
        bind=bind_all,
        place=lambda workspace: recall(workspace).folder,
        limit=float(bash.limit),
        isolated=bash.sandbox.isolated,
        interactive=True,
        rule=_offer_no_rule,
        looks=_only_restarts,
    )


def bind(wanted: BashArguments, workspace: Path) -> str:
    """Bind an approval like run_command's, and to the shell's folder."""
    folder = recall(workspace).folder
    at = f"cd -- {shlex.quote(folder)}; {wanted.command}"
    return f"{folder}\n{shell_tool.bind(shell_tool.RunCommandArguments(command=at), workspace)}"


def _offer_no_rule(arguments: BaseModel) -> str:
    """Offer no 'always': the effect of the same words depends on earlier commands of the shell."""
    return ""


def _only_restarts(wanted: BashArguments) -> bool:
    return not wanted.command.strip()


async def _go(shell: WorkspaceShell, folder: str) -> bool:
    """Take the shell to a folder of the workspace; False if it is not there."""
    assert shell.session is not None
    there = shlex.quote(os.path.join(shell.top, folder))
    ran = await shell.session.run(f"builtin cd -- {there}", _QUICK, _show_nothing)
    shell.folder = ran.folder or shell.folder
    return not ran.done.exit_code


async def _keep(context: ToolContext, before: ShellPlace, now: ShellPlace) -> ShellPlace:
    if now != before:
        await asyncio.to_thread(remember, context.workspace, now)
    return now


def _show_nothing(text: str) -> None:
    return None
