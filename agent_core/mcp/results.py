"""Converts the result of a server's tool: words and pictures for the model, marked as a stranger's;
files."""

import base64
import binascii
import mimetypes
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_core.context import pictures
from agent_core.errors import ToolFailed
from agent_core.mcp.marks import mark_untrusted
from agent_core.messages import GivenFile, Picture, ToolOutput
from agent_core.tools import paths

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

MAX_FILES = 10
MAX_BYTES = 20_000_000
Keep = Callable[[Path, str], GivenFile]
Redact = Callable[[str], str]
"""Redacts secrets."""


def output(  # noqa: PLR0913 - one a word of the result
    result: "CallToolResult",
    server: str,
    workspace: Path,
    key: str,
    keep: Keep | None,
    redact: Redact = str,
) -> ToolOutput:
    """Convert the result; files are written into `workspace`, and sent to people if `keep` is
    set."""
    files = _Files(workspace, key, keep)
    lines = [line for block in result.content if (line := _line(block, files))]
    if result.structured_content is not None and not _has_text(lines):
        lines.append(_write_structure(result.structured_content))
    said = [redact(line) for line in lines or ["(nothing)"]]
    return ToolOutput(
        text=mark_untrusted(server, said),
        files=tuple(files.given),
        pictures=tuple(files.pictures),
        shown="\n".join(said),  # the marks are only for the model
    )


def _write_structure(content: object) -> str:
    try:
        return msgspec.json.encode(content).decode()
    except RecursionError:
        return "(left out: it is nested too deeply)"


def words(result: "CallToolResult") -> str:
    """Return its text alone, for a failure."""
    texts = (str(getattr(block, "text", "")) for block in result.content)
    return "\n".join(filter(None, texts)) or "it failed, and says no more"


def _has_text(lines: Iterable[str]) -> bool:
    return any(line and not line.startswith("(file") for line in lines)


def _line(block: "ContentBlock", files: "_Files") -> str:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return files.add(block.data, block.mime_type)
        case "resource_link":
            return f"{block.name}: {block.uri}"
        case "resource":
            found = block.resource
            text, data = getattr(found, "text", None), getattr(found, "blob", None)
            if isinstance(text, str):
                return f"{found.uri}\n{text}"
            return files.add(str(data or ""), found.mime_type or "application/octet-stream")
        case _:
            return ""


class _Files:
    """Files of one result."""

    def __init__(self, workspace: Path, key: str, keep: Keep | None) -> None:
        self.given: list[GivenFile] = []
        self.pictures: list[Picture] = []
        self._workspace, self._keep, self._count = workspace, keep, 0
        self._stem = "".join(c if c.isalnum() else "-" for c in key)[-60:].strip("-")

    def add(self, data: str, mime: str) -> str:
        """Write the file; return a line about it for the model."""
        if len(data) > MAX_BYTES * 4 // 3 or self._count >= MAX_FILES:
            return f"(file left out: {mime}, too large or one too many)"
        try:
            content = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            return f"(file left out: {mime}, not readable)"
        self._count += 1
        suffix = mimetypes.guess_extension(mime.partition(";")[0].strip()) or ".bin"
        name = f"{self._stem}-{self._count}{suffix}"
        try:
            where = paths.put_output(self._workspace, name, content)
        except ToolFailed as error:  # the call itself took effect
            return f"(file left out: {mime}; {error})"
        shown = ""
        if self._keep is not None:
            given = self._keep(self._workspace, where)
            self.given.append(given)
            shown = ", shown to the person"
            seen = pictures.kind(content[:12])  # its declared name is not trusted
            if seen and given.size <= pictures.MAX_BYTES:
                picture = Picture(ref=given.ref, path=where, mime=seen, size=given.size)
                self.pictures.append(picture)
        return f"(file {where}: {mime}, {len(content):,} bytes{shown})"
