"""The tool str_replace_editor: looks at files and folders, makes one exact change at a time, and
takes it back. Over the same paths and kept states as write_file and rollback."""

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import BaseModel, Field

from agent_core.errors import ToolFailed
from agent_core.messages import ToolOutput
from agent_core.tools import backups, files, paths
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.encodings import UTF8, find_encoding

Command = Literal["view", "create", "str_replace", "insert", "undo_edit"]
_Changed: TypeAlias = tuple[str, int, str]
"""The file's new content, the first new line, and the encoding to write it in."""
AROUND = 4
"""Lines shown before and after a change."""
WHOLE = 1_000_000
"""Lines of a view without a range; the page's limit of characters cuts it."""


class EditorArguments(BaseModel):
    """Arguments of str_replace_editor."""

    command: Command
    path: str
    file_text: str | None = Field(default=None, description="create: the whole new file.")
    old_str: str | None = None
    new_str: str | None = Field(default=None, description="str_replace, insert: the new text.")
    insert_line: int | None = Field(
        default=None, ge=0, description="insert: after this line; 0: first."
    )
    view_range: list[int] | None = Field(
        default=None, min_length=2, max_length=2, description="view: first line, last (-1: end)."
    )


def editor_tool() -> Tool:
    """Make str_replace_editor. Viewing is no write; an approval holds for the file as it was."""
    return Tool(
        name="str_replace_editor",
        description="View a file or folder; create a file, replace a text that occurs once, insert "
        "lines, undo its last change.",
        arguments=EditorArguments,
        repetition="effect",
        access="write",
        call=_call,
        bind=bind,
        preview=preview,
        looks=looks,
    )


async def _call(wanted: EditorArguments, context: ToolContext) -> ToolOutput:
    said = await asyncio.to_thread(edit, wanted, context.workspace)
    return ToolOutput(text=said, changed=() if wanted.command == "view" else (wanted.path,))


def edit(wanted: EditorArguments, workspace: Path) -> str:
    """Run the command; ToolFailed with what to do instead."""
    match wanted.command:
        case "view":
            return _view(wanted, workspace)
        case "undo_edit":
            return backups.roll_back(backups.RollbackArguments(path=wanted.path), workspace)
        case _:
            content, line, encoding = _apply_change(wanted, workspace)
            change = files.WriteFileArguments(path=wanted.path, content=content)
            said = files.write(change, workspace, encoding)
            return said if wanted.command == "create" else f"{said}\n{_show_around(content, line)}"


def looks(wanted: EditorArguments) -> bool:
    """True for a view."""
    return wanted.command == "view"


def preview(wanted: EditorArguments, workspace: Path) -> str:
    """The diff that the change would make, for the approval card; "" where it would fail."""
    try:
        match wanted.command:
            case "view":
                return ""
            case "undo_edit":
                return backups.preview(backups.RollbackArguments(path=wanted.path), workspace)
            case _:
                content, _, encoding = _apply_change(wanted, workspace)
    except ToolFailed:
        return ""
    return files.preview(
        files.WriteFileArguments(path=wanted.path, content=content), workspace, encoding
    )


def bind(wanted: EditorArguments, workspace: Path) -> str:
    """The file as it is: once it has changed, the same words are another change."""
    try:
        if wanted.command == "undo_edit":
            step = backups.bind(backups.RollbackArguments(path=wanted.path), workspace)
            return f"{step} {_digest(workspace, wanted.path)}"
        return "" if wanted.command == "view" else _digest(workspace, wanted.path)
    except ToolFailed:
        return ""


def _digest(workspace: Path, path: str) -> str:
    if paths.status(workspace, paths.resolve(workspace, path)) is None:
        return ""
    return hashlib.sha256(backups.content(workspace, path)[0]).hexdigest()


def _view(wanted: EditorArguments, workspace: Path) -> str:
    if paths.is_folder(workspace, paths.resolve(workspace, wanted.path)):
        return files.entries(files.ListFilesArguments(path=wanted.path, pattern="*"), workspace)
    first, last = wanted.view_range or (1, -1)
    if first < 1 or (last != -1 and last < first):
        raise ToolFailed("view_range is [first line, last line], from 1; -1 is the end.")
    lines = WHOLE if last == -1 else last - first + 1
    return files.read(
        files.ReadFileArguments(path=wanted.path, offset=first, limit=lines), workspace
    )


def _apply_change(wanted: EditorArguments, workspace: Path) -> _Changed:
    how: dict[str, Callable[[EditorArguments, Path], _Changed]]
    how = {"create": _create_file, "str_replace": _replace_text, "insert": _insert_lines}
    return how[wanted.command](wanted, workspace)


def _create_file(wanted: EditorArguments, workspace: Path) -> _Changed:
    if wanted.file_text is None:
        raise ToolFailed("create needs file_text.")
    if paths.status(workspace, paths.resolve(workspace, wanted.path, write=True)) is not None:
        raise ToolFailed(f"{wanted.path} is there already. Use str_replace, or write_file.")
    return wanted.file_text, 1, UTF8


def _replace_text(wanted: EditorArguments, workspace: Path) -> _Changed:
    old, new = wanted.old_str, wanted.new_str or ""
    if not old:
        raise ToolFailed("str_replace needs old_str: the text that is to be replaced.")
    if old == new:
        raise ToolFailed("old_str and new_str are the same: nothing would change.")
    content, encoding = _read_text(wanted.path, workspace)
    at = content.find(old)
    if at < 0:
        hint = (
            " It is there with other spaces or line ends." if _holds_loosely(old, content) else ""
        )
        raise ToolFailed(f"old_str is not in {wanted.path}.{hint} View it, copy it exactly.")
    if content.find(old, at + 1) >= 0:
        lines = ", ".join(str(n) for n in _places(content, old))
        raise ToolFailed(f"old_str stands at lines {lines}. Take more of the text around it.")
    changed = content[:at] + new + content[at + len(old) :]
    return changed, content.count("\n", 0, at) + 1, encoding


def _insert_lines(wanted: EditorArguments, workspace: Path) -> _Changed:
    if wanted.insert_line is None or wanted.new_str is None:
        raise ToolFailed("insert needs insert_line (0: at the beginning) and new_str.")
    content, encoding = _read_text(wanted.path, workspace)
    lines = content.splitlines(keepends=True)
    if wanted.insert_line > len(lines):
        raise ToolFailed(f"{wanted.path} has {len(lines)} lines: no line {wanted.insert_line}.")
    before, after = lines[: wanted.insert_line], lines[wanted.insert_line :]
    if before and not before[-1].endswith("\n"):
        before[-1] += "\n"
    new = wanted.new_str if not after or wanted.new_str.endswith("\n") else f"{wanted.new_str}\n"
    return "".join((*before, new, *after)), wanted.insert_line + 1, encoding


def _read_text(path: str, workspace: Path) -> tuple[str, str]:
    """The whole file, and its encoding."""
    data = backups.content(workspace, path)[0]
    encoding = find_encoding(data)
    try:
        return data.decode(encoding or UTF8), encoding
    except UnicodeDecodeError:
        raise ToolFailed(f"{path} is not text throughout and cannot be edited here.") from None


def _holds_loosely(old: str, content: str) -> bool:
    return " ".join(old.split()) in " ".join(content.split())


def _places(content: str, old: str) -> list[int]:
    """The first few lines where `old` begins; places that overlap count too."""
    found: list[int] = []
    at = content.find(old)
    while at >= 0 and len(found) < 5:
        found.append(content.count("\n", 0, at) + 1)
        at = content.find(old, at + 1)
    return found


def _show_around(content: str, line: int) -> str:
    """Numbered lines around the change."""
    lines = content.splitlines()
    first = max(0, line - 1 - AROUND)
    shown = lines[first : line + AROUND]
    return "\n".join(f"{n:>5}  {text[:300]}" for n, text in enumerate(shown, first + 1))
