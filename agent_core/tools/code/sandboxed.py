"""Tools by the names of a separate computer: sandbox_file, and those of the profile `sandboxed`.

One tool for files, over the file tools; its shell is bash.
"""

import asyncio
import os
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from agent_core.errors import ToolFailed
from agent_core.messages import ToolOutput
from agent_core.tools import backups, files, paths
from agent_core.tools.code.bash import Bash, bash_tool
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.send import FileStore

IDLE = 900.0
"""Seconds without a command after which the shell of a separate computer is ended."""


class SandboxFileArguments(BaseModel):
    """Arguments of sandbox_file and sandbox_files."""

    action: Literal["read", "write", "list", "delete"]
    path: str = "."
    content: str | None = Field(default=None, description="write: the whole file.")


class VisionArguments(BaseModel):
    """Arguments of sandbox_vision."""

    path: str


def file_tool(name: str = "sandbox_file") -> Tool:
    """sandbox_file, or the same under another name. To read and to list is no write."""
    return Tool(
        name=name,
        description="Read, write, list or delete files of the workspace.",
        summary="read, write, list, delete files",
        arguments=SandboxFileArguments,
        repetition="idempotent",
        access="write",
        call=_call,
        bind=bind,
        is_done=is_done,
        preview=preview,
        looks=looks,
    )


def sandboxed_tools(bash: Bash, file_store: FileStore) -> tuple[Tool, ...]:
    """Make the tools of the profile `sandboxed`, if the sandbox isolates."""
    if not bash.sandbox.isolated:
        return ()
    shells = (bash_tool(bash, "sandbox_shell", IDLE),) if "bash" in bash.sandbox.programs else ()
    return (*shells, file_tool("sandbox_files"), vision_tool(file_store))


def vision_tool(file_store: FileStore) -> Tool:
    """Make sandbox_vision; pictures shown to the model are copied to `file_store`."""

    async def call(wanted: VisionArguments, context: ToolContext) -> ToolOutput:
        return await asyncio.to_thread(
            files.show_picture, file_store, context.workspace, wanted.path
        )

    return Tool(
        name="sandbox_vision",
        description="Look at a picture of the workspace yourself: PNG, JPEG, GIF or WebP.",
        arguments=VisionArguments,
        repetition="idempotent",
        access="read",
        call=call,
    )


async def _call(wanted: SandboxFileArguments, context: ToolContext) -> str | ToolOutput:
    work = {"read": read, "list": entries, "write": write, "delete": delete}[wanted.action]
    said = await asyncio.to_thread(work, wanted, context.workspace)
    return said if looks(wanted) else ToolOutput(text=said, changed=(wanted.path,))


def looks(wanted: SandboxFileArguments) -> bool:
    """Return True for a read-only action."""
    return wanted.action in ("read", "list")


def preview(wanted: SandboxFileArguments, workspace: Path) -> str:
    """The diff that a call would make, for the approval card."""
    if wanted.action == "write" and wanted.content is not None:
        return files.preview(
            files.WriteFileArguments(path=wanted.path, content=wanted.content), workspace
        )
    if wanted.action != "delete":
        return ""
    try:
        return backups.diff(backups.content(workspace, wanted.path)[0], b"", wanted.path)
    except ToolFailed:
        return ""


def bind(wanted: SandboxFileArguments, workspace: Path) -> str:
    """Bind an approval to the changed or removed file as it is."""
    written = files.WriteFileArguments(path=wanted.path, content="")
    return "" if looks(wanted) else files.bind(written, workspace)


def is_done(wanted: SandboxFileArguments, workspace: Path) -> bool:
    """The file is as the call would make it."""
    if wanted.action == "write" and wanted.content is not None:
        return files.is_written(
            files.WriteFileArguments(path=wanted.path, content=wanted.content), workspace
        )
    try:
        real = paths.resolve(workspace, wanted.path, write=True)
    except ToolFailed:
        return False
    return wanted.action == "delete" and paths.status(workspace, real) is None


def read(wanted: SandboxFileArguments, workspace: Path) -> str:
    """A file's first page."""
    return files.read(files.ReadFileArguments(path=wanted.path), workspace)


def entries(wanted: SandboxFileArguments, workspace: Path) -> str:
    """A folder's entries."""
    return files.entries(files.ListFilesArguments(path=wanted.path), workspace)


def write(wanted: SandboxFileArguments, workspace: Path) -> str:
    """Write the whole file, and back up the old one."""
    if wanted.content is None:
        raise ToolFailed("write needs content.")
    return files.write(
        files.WriteFileArguments(path=wanted.path, content=wanted.content), workspace
    )


def delete(wanted: SandboxFileArguments, workspace: Path) -> str:
    """Remove a file, and back it up, so that rollback restores it."""
    real = paths.resolve(workspace, wanted.path, write=True)
    if paths.status(workspace, real) is None:
        return f"There is no {wanted.path}; nothing to delete."
    if paths.is_folder(workspace, real):
        raise ToolFailed(f"{wanted.path} is a folder. Delete its files, or use a command.")
    old, _ = backups.content(workspace, wanted.path)
    relative = real.relative_to(os.path.realpath(workspace))
    try:
        backups.keep(workspace, relative, old)
        paths.remove(workspace, real)
    except OSError as error:
        raise paths.as_tool_failure(wanted.path, error) from None
    return f"Deleted {paths.display_path(relative)} ({len(old):,} bytes). rollback brings it back."
