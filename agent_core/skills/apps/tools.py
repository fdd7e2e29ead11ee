"""The tools create_app_project, app_write_file, app_install_packages and app_start_server.

They are turn tools over write_file, run_command and check_command: their effects are judged, asked
about and journaled as those calls, with their diffs, their sandbox and their background commands.
"""

import asyncio
import os
import re
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec
from pydantic import BaseModel, Field

from agent_core.errors import ToolFailed
from agent_core.messages import SharedLink, ToolOutput
from agent_core.orchestration.brief import Brief, Hands
from agent_core.scope import Scope
from agent_core.skills.apps.frameworks import (
    MANIFEST,
    STACKS,
    AppManifest,
    Framework,
    Stack,
    starter_files,
)
from agent_core.skills.calling import call_tools, require_good
from agent_core.skills.contract import Wanted
from agent_core.skills.files import slug
from agent_core.tools import paths
from agent_core.tools.contract import Args, Tool
from agent_core.tools.turn.tool import TurnCallable, TurnTool

CREATE, WRITE = "create_app_project", "app_write_file"
INSTALL, START = "app_install_packages", "app_start_server"
FOLDER = "apps"
INSTALL_SECONDS, START_SECONDS = 300, 60
LOG, PID = ".server.log", ".server.pid"
"""Files of a project: its server's words; the number of its process, which leads a group, and when
that began."""
SEEN = "The person has a link to look at port {port}; it is good once, and not for you to repeat."
DOWN = "Nothing answers at port {port}, so nobody can look at it: see above, and mend it."
UNSEEN = "The person cannot look at it: the port for previews (PREVIEW_PORT) is taken."
UP = "(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null"
_AGE = "$(sed 's/.*) //' /proc/$p/stat 2>/dev/null | cut -d' ' -f20)"
"""Prints when the process `p` began: in another sandbox its number is another one's. Nothing where
that cannot be read: there the numbers are those of the machine."""
_BEGIN = (
    "{{ start={start}; "  # first, since a card shows the start and the end of a long line
    '{{ read -r p at < {pid} && [ "$at" = "{age}" ] && kill -9 -- -$p && '
    "for n in $(seq 50); do {up} || break; sleep 0.1; done; }} 2>/dev/null; "
    'setsid sh -c "$start" > {log} 2>&1 & p=$!; echo "$p {age}" > {pid}; '
    "for n in $(seq {tries}); do {up} && break; kill -0 $p || break; sleep 0.2; "
    "done 2>/dev/null; cat {log}; {up}; }}"
)
"""Starts the server, once the previous one no longer answers, and checks that it answers: it ends
with the sandbox, after half an hour without use, and restarts for visitors."""
_ANY_STACK = STACKS["React"]
"""Stands for a project's own where no file is read: the commands differ by words alone."""
_PACKAGE = re.compile(r"@?[A-Za-z0-9][\w.@/\[\]-]*(?:[=<>~^!]=?[\w.*]+)?")


class CreateAppArguments(BaseModel):
    """Arguments of create_app_project."""

    name: str = Field(min_length=1, max_length=60)
    framework: Framework


class AppFileArguments(BaseModel):
    """Arguments of app_write_file."""

    project: str = Field(min_length=1, max_length=100, description="Such as apps/shop")
    path: str = Field(min_length=1, max_length=200, description="In the project.")
    content: str


class InstallArguments(BaseModel):
    """Arguments of app_install_packages."""

    project: str = Field(min_length=1, max_length=100)
    packages: list[str] = Field(default=[], max_length=30, description="Besides the project's own.")


class StartServerArguments(BaseModel):
    """Arguments of app_start_server."""

    project: str = Field(min_length=1, max_length=100)
    port: int = Field(default=0, ge=0, le=65_535)


class ProjectManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A project's manifest, or what is wrong with it."""

    manifest: AppManifest | None = None
    why: str = ""


class Preview(Protocol):
    """Shows people a server in the sandbox."""

    @property
    def is_public(self) -> bool:
        """People reach it from other machines."""

    async def open(self, workspace: Path, port: int, start: str = "") -> str:
        """Return a single-use link; the command `start` restarts the server. OSError."""


def app_tools(preview: Preview) -> tuple[Tool, ...]:
    """Make the four tools; commands run like those of run_command, and `preview` shows the app."""
    return (
        _tool(
            CREATE,
            "Begin an app's project in the workspace.",
            CreateAppArguments,
            _create,
            _list_starters,
        ),
        _tool(
            WRITE,
            "Write a file of an app's project.",
            AppFileArguments,
            _write,
            lambda wanted: (_make_write(wanted),),
        ),
        _tool(
            INSTALL,
            "Install an app's packages, and more of them, from the usual indexes.",
            InstallArguments,
            _install,
            lambda wanted: (_make_install(wanted, _ANY_STACK),),
        ),
        _tool(
            START,
            "Start an app's server, look at what it says, and give the person a link to see it.",
            StartServerArguments,
            partial(_start, preview),
            lambda wanted: (_make_start(wanted, _ANY_STACK),),
        ),
    )


def folder_of(name: str) -> str:
    """Return the folder of the project with this name."""
    return f"{FOLDER}/{slug(name, 'app')}"


def resolve_path(project: str, path: str) -> str:
    """The path in the workspace of the project's file `path`; raises ToolFailed where it is not
    below the project."""
    whole = os.path.normpath(f"{project}/{path}")
    if not whole.startswith(f"{os.path.normpath(project)}/"):
        raise ToolFailed(f"{path} is not in {project}.")
    return whole


async def _create(wanted: CreateAppArguments, scope: Scope, brief: Brief, hands: Hands) -> str:
    project, stack = folder_of(wanted.name), STACKS[wanted.framework]
    files = starter_files(slug(wanted.name, "app"), wanted.framework)
    for result in await call_tools(scope.child("files"), brief, hands, _list_starters(wanted)):
        require_good(result)
    return f"Began {project}: {', '.join(files)}. {stack.about}"


def _list_starters(wanted: CreateAppArguments) -> tuple[Wanted, ...]:
    """The calls that write a new project's files."""
    project = folder_of(wanted.name)
    files = starter_files(slug(wanted.name, "app"), wanted.framework)
    return tuple(
        ("write_file", {"path": f"{project}/{path}", "content": content})
        for path, content in files.items()
    )


async def _write(wanted: AppFileArguments, scope: Scope, brief: Brief, hands: Hands) -> str:
    (result,) = await call_tools(scope.child("file"), brief, hands, (_make_write(wanted),))
    return require_good(result)


def _make_write(wanted: AppFileArguments) -> Wanted:
    path = resolve_path(wanted.project, wanted.path)
    return "write_file", {"path": path, "content": wanted.content}


async def _install(
    wanted: InstallArguments, scope: Scope, brief: Brief, hands: Hands
) -> str | ToolOutput:
    stack = await _stack(scope, brief, wanted.project)
    run = _make_install(wanted, stack)
    if not stack.install:
        return "It needs no packages."
    (result,) = await call_tools(scope.child("install"), brief, hands, (run,))
    return ToolOutput(text=require_good(result), command=result.command)


def _make_install(wanted: InstallArguments, stack: Stack) -> Wanted:
    for name in wanted.packages:
        if not _PACKAGE.fullmatch(name):
            raise ToolFailed(f"{name!r} is no name of a package.")
    line = stack.install.format(packages=" ".join(map(shlex.quote, wanted.packages))).strip()
    return "run_command", {
        "command": _run_inside(wanted.project, line),
        "timeout": INSTALL_SECONDS,
        "hosts": ["packages"],
    }


async def _start(
    preview: Preview, wanted: StartServerArguments, scope: Scope, brief: Brief, hands: Hands
) -> ToolOutput:
    stack = await _stack(scope, brief, wanted.project)
    port = wanted.port or stack.port
    run = _make_start(wanted, stack)
    (began,) = await call_tools(scope.child("start"), brief, hands, (run,))
    said = require_good(began)
    if began.command is None or began.command.failed:
        return ToolOutput(text=f"{said}\n{DOWN.format(port=port)}", command=began.command)
    open_link = partial(_open_link, preview, Path(brief.workspace), port, str(run[1]["command"]))
    url = await scope.once("link", open_link, kind=str)
    if not url:
        return ToolOutput(text=f"{said}\n{UNSEEN}", shown=said, command=began.command)
    name = wanted.project.rpartition("/")[2]
    link = SharedLink(of="app", url=url, public=preview.is_public, name=name)
    told = f"{said}\n{SEEN.format(port=port)}"
    return ToolOutput(text=told, shown=said, command=began.command, link=link)


def _make_start(wanted: StartServerArguments, stack: Stack) -> Wanted:
    port = wanted.port or stack.port
    line = make_start_line(wanted.project, stack.start.format(port=port), port)
    return "run_command", {"command": line, "timeout": START_SECONDS + 30}


def make_start_line(project: str, start: str, port: int) -> str:
    """The command line that starts the project's server by `start`, and waits until it answers."""
    command = _BEGIN.format(
        start=shlex.quote(f"exec {start}"),
        log=LOG,
        pid=PID,
        age=_AGE,
        tries=START_SECONDS * 5,
        up=UP.format(port=port),
    )
    return _run_inside(project, command)


async def _open_link(preview: Preview, workspace: Path, port: int, start: str) -> str:
    try:
        return await preview.open(workspace, port, start)
    except OSError:
        return ""


async def _stack(scope: Scope, brief: Brief, project: str) -> Stack:
    look = partial(asyncio.to_thread, _look, Path(brief.workspace), project)
    known = await scope.once("manifest", look, kind=ProjectManifest)
    if known.manifest is None:
        raise ToolFailed(known.why)
    return STACKS[known.manifest.framework]


def _look(workspace: Path, project: str) -> ProjectManifest:
    path = f"{project}/{MANIFEST}"
    try:
        with paths.open_read(workspace, path) as file:
            return ProjectManifest(
                manifest=msgspec.json.decode(file.read(10_000), type=AppManifest)
            )
    except (ToolFailed, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ProjectManifest(why=f"{project} is no app's project: begin it with {CREATE}.")


def _run_inside(project: str, line: str) -> str:
    return f"cd {shlex.quote(project)} && {line}"


def _tool(
    name: str,
    about: str,
    arguments: type[Args],
    run_in_turn: TurnCallable[Args],
    makes: Callable[[Args], tuple[Wanted, ...]],
) -> Tool:
    return TurnTool(
        name=name,
        description=about,
        arguments=arguments,
        repetition="idempotent",
        access="read",
        run_in_turn=run_in_turn,
        makes=makes,
    )
