"""The report as a file: written into the workspace, and sent to people as a copy."""

import asyncio
import hashlib
import re
import unicodedata
from pathlib import Path

import msgspec

from agent_core.messages import GivenFile, ToolCall, ToolOutput
from agent_core.orchestration.brief import Brief
from agent_core.scope import Scope
from agent_core.tools import backups, paths
from agent_core.tools.send import FileStore

FOLDER = "reports"
NAME = 50
LIMIT = 60.0
"""Seconds for the file to be written."""


async def send_report(
    scope: Scope, brief: Brief, file_store: FileStore, title: str, report: str
) -> tuple[str, GivenFile | None]:
    """Write the report and send it; return its path in the workspace, and the copy. None if it
    could not be written: the answer is complete without it."""
    path = f"{FOLDER}/{_slug(title)}-{hashlib.sha256(report.encode()).hexdigest()[:8]}.md"
    arguments = msgspec.json.encode({"path": path}).decode()
    call = ToolCall(id=f"give_report-{path[-11:-3]}", name="give_report", arguments=arguments)

    async def run(_: str) -> ToolOutput:
        file = await asyncio.to_thread(
            _write_report, Path(brief.workspace), file_store, path, report
        )
        return ToolOutput(text=msgspec.json.encode(file).decode(), files=(file,))

    result = await scope.tool(call, "idempotent", run, LIMIT)
    if result.error:
        return "", None
    return path, msgspec.json.decode(result.content, type=GivenFile)


def _write_report(workspace: Path, file_store: FileStore, path: str, report: str) -> GivenFile:
    try:
        paths.make(workspace)
        real = paths.resolve(workspace, path, write=True)
        data = report.encode("utf-8", "replace")
        paths.take_room(workspace, len(data))
        backups.store(workspace, real, data, 0o644)
    except OSError as error:
        raise paths.as_tool_failure(path, error) from None
    return file_store.keep(workspace, path)


def _slug(title: str) -> str:
    plain = unicodedata.normalize("NFKC", title).casefold()
    return re.sub(r"[^\w]+", "-", plain)[:NAME].strip("-_") or "report"
