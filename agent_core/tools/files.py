"""The file tools: read_file, write_file, list_files. They start no process."""

import asyncio
import hashlib
import os
import stat
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from pydantic import BaseModel, Field

from agent_core.context import pictures
from agent_core.documents.kinds import find_kind, find_named_kind, read_ending
from agent_core.documents.reader import read_document
from agent_core.errors import ToolFailed
from agent_core.messages import ToolOutput
from agent_core.tools import backups, paths
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.encodings import SAMPLE, UTF8, decode_text, find_encoding
from agent_core.tools.globs import Glob
from agent_core.tools.send import FileStore

PAGE = 9_000
"""Characters of a file in one result: less than what the toolbox would cut."""
PIECE = 4_000
"""Bytes; a longer line counts as several."""
SCAN = 64_000_000
"""Maximum bytes read to find the first requested line."""
MAX_ENTRIES = 1_000
MAX_CHARACTER = 4
"""Bytes of one character in any encoding."""
NO_TEXT = b"(The document has no text.)"

_MAGIC = {
    b"\x89PNG": "PNG image", b"\xff\xd8\xff": "JPEG image", b"GIF8": "GIF image",
    b"RIFF": "RIFF: picture, sound or film", b"II*\0": "TIFF image", b"MM\0*": "TIFF image",
    b"\x1f\x8b": "gzip", b"7z\xbc\xaf": "7z archive", b"Rar!": "RAR archive", b"\xfd7zXZ": "xz",
    b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd", b"\x7fELF": "program", b"MZ": "program",
    b"SQLite format 3": "SQLite database", b"OggS": "Ogg sound", b"ID3": "MP3 sound",
}  # fmt: skip
_HTML = (b"<!doctype html", b"<html")


class ReadFileArguments(BaseModel):
    """Arguments of read_file."""

    path: str
    offset: int = Field(default=1, ge=1, description="First line.")
    limit: int = Field(default=2_000, ge=1, description="Lines.")


class WriteFileArguments(BaseModel):
    """Arguments of write_file."""

    path: str
    content: str


class ListFilesArguments(BaseModel):
    """Arguments of list_files."""

    path: str = "."
    pattern: str = Field(default="*", description="Such as **/*.py")


def file_tools(file_store: FileStore | None = None) -> tuple[Tool, ...]:
    """The three file tools. `file_store`: where a picture is copied to that read_file shows."""

    async def call_read(wanted: ReadFileArguments, context: ToolContext) -> ToolOutput:
        def look() -> ToolOutput:
            if file_store is not None and _is_picture(context.workspace, wanted.path):
                return show_picture(file_store, context.workspace, wanted.path)
            return ToolOutput(text=read(wanted, context.workspace))

        return await asyncio.to_thread(look)

    return (
        Tool(
            name="read_file",
            description="Read a file of the workspace: text, PDF, DOCX, XLSX, PPTX, picture …",
            arguments=ReadFileArguments,
            repetition="pure",
            access="read",
            call=call_read,
        ),
        Tool(
            name="write_file",
            description="Write a text file of the workspace, whole; returns the diff.",
            arguments=WriteFileArguments,
            repetition="idempotent",
            access="write",
            call=_call_write,
            bind=bind,
            is_done=is_written,
            preview=preview,
        ),
        Tool(
            name="list_files",
            description="List a folder of the workspace: name, path, type, size.",
            arguments=ListFilesArguments,
            repetition="pure",
            access="read",
            call=_call_list,
        ),
    )


def show_picture(file_store: FileStore, workspace: Path, path: str) -> ToolOutput:
    """A picture of the workspace for a model that sees. ToolFailed; blocks."""
    picture = file_store.keep_picture(workspace, path)
    said = f"{picture.path} ({picture.mime}, {picture.size:,} bytes) is shown to you."
    return ToolOutput(text=said, pictures=(picture,))


def _is_picture(workspace: Path, path: str) -> bool:
    with paths.open_read(workspace, path) as file:
        return bool(pictures.kind(file.read(12)))


async def _call_write(wanted: WriteFileArguments, context: ToolContext) -> ToolOutput:
    said = await asyncio.to_thread(write, wanted, context.workspace)
    return ToolOutput(text=said, changed=(wanted.path,))


async def _call_list(wanted: ListFilesArguments, context: ToolContext) -> str:
    return await asyncio.to_thread(entries, wanted, context.workspace)


def read(wanted: ReadFileArguments, workspace: Path) -> str:
    """A page of the file, and how to go on; of a document its text, a binary file is described."""
    with paths.open_read(workspace, wanted.path) as file:
        info = os.fstat(file.fileno())
        if not info.st_size:
            return f"{wanted.path} is empty (0 bytes)."
        head = file.read(8_192)
        if (kind := find_kind(wanted.path, head)) is not None:
            text = read_document(wanted.path, kind, file).encode() or NO_TEXT
            return _page(BytesIO(text), wanted, len(text))
        head += file.read(SAMPLE - len(head)) if head.isascii() else b""
        if not (encoding := find_encoding(head)):
            return (
                f"{wanted.path} is binary ({_name_data(head)}, {info.st_size:,} bytes) and not "
                f"shown"
            )
        note = _tell_other(wanted.path, head)
        if encoding != UTF8 and info.st_size <= SCAN:
            text = decode_text(head + file.read()).encode()
            page = _page(BytesIO(text), wanted, len(text))
            return f"{page}\n[It is written in {encoding}.]{note}"
        file.seek(0)
        return f"{_page(file, wanted, info.st_size)}{note}"


def read_text(path: str, workspace: Path, most: int) -> str:
    """Return the first `most` characters of the text of a file, or of a document's. Raises
    ToolFailed where there is none."""
    with paths.open_read(workspace, path) as file:
        head = file.read(SAMPLE)
        if (kind := find_kind(path, head)) is not None:
            return read_document(path, kind, file)[:most]
        if not (encoding := find_encoding(head)):
            raise ToolFailed(f"{path} is binary ({_name_data(head)}).")
        data = head + file.read(MAX_CHARACTER * most)
    return data.decode(encoding, "replace").removeprefix("\ufeff")[:most]


def _tell_other(path: str, head: bytes) -> str:
    """Return a note about a text whose name is one of a document, otherwise ""."""
    ending = read_ending(path)
    if not ending or find_named_kind(ending) == "eml":
        return ""
    what = "HTML" if head.lstrip().lower().startswith(_HTML) else "plain text"
    return f"\n[Its name ends in .{ending}, but it is {what}.]"


def _name_data(head: bytes) -> str:
    return next((what for magic, what in _MAGIC.items() if head.startswith(magic)), "data")


def _page(file: BinaryIO, wanted: ReadFileArguments, size: int) -> str:
    shown: list[str] = []
    used = number = scanned = 0
    more = False
    for number, raw in enumerate(iter(lambda: file.readline(PIECE), b""), 1):
        scanned += len(raw)
        if scanned > SCAN and number < wanted.offset:
            raise ToolFailed(
                f"Line {wanted.offset} is not in the first {SCAN:,} bytes; use a command."
            )
        if number < wanted.offset:
            continue
        text = raw.decode("utf-8", "replace")
        text = text.removeprefix("\ufeff") if number == 1 else text
        more = len(shown) == wanted.limit or used + len(text) > PAGE
        if more:
            break
        shown.append(text)
        used += len(text)
    if not shown:
        raise ToolFailed(f"{wanted.path} has only {number} lines.")
    if not more:
        return "".join(shown)
    last = wanted.offset + len(shown) - 1
    return (
        "".join(shown)
        + f"\n[Lines {wanted.offset} to {last} of a file of {size:,} bytes. "
        + f"For more: offset={last + 1}, and limit.]"
    )


def write(wanted: WriteFileArguments, workspace: Path, encoding: str = UTF8) -> str:
    """Write the file atomically, and back up the old one. Return a description, with the diff."""
    real = paths.resolve(workspace, wanted.path, write=True)
    relative = real.relative_to(os.path.realpath(workspace))
    named = paths.display_path(relative)
    new = _encode(wanted, encoding)
    there = paths.status(workspace, real) is not None
    old, mode = backups.content(workspace, wanted.path) if there else (None, 0o644)
    if old == new:
        return f"{named} has this content already; nothing changed."
    paths.take_room(workspace, len(new) + len(old or b""))
    try:
        backups.keep(workspace, relative, old)
        backups.store(workspace, real, new, mode)
    except OSError as error:
        raise paths.as_tool_failure(wanted.path, error) from None
    verb = "Created" if old is None else "Changed"
    shown = backups.diff(old or b"", new, named)
    return f"{verb} {named} ({len(new):,} bytes).\n{shown}"


def _encode(wanted: WriteFileArguments, encoding: str) -> bytes:
    try:
        return wanted.content.encode(encoding)
    except UnicodeEncodeError as error:
        odd = wanted.content[error.start]
        if "\ud800" <= odd <= "\udfff":
            why = "The content has half of a character pair; write it again."
        else:
            why = f"{wanted.path} is written in {encoding}, which has no {odd}. "
            why += "Leave it out, or write the whole file with write_file, in UTF-8."
        raise ToolFailed(why) from None


def preview(wanted: WriteFileArguments, workspace: Path, encoding: str = UTF8) -> str:
    """The diff that `write` would make, for the approval card; "" where it would be refused."""
    try:
        real = paths.resolve(workspace, wanted.path, write=True)
        there = paths.status(workspace, real) is not None
        old = backups.content(workspace, wanted.path)[0] if there else b""
        relative = real.relative_to(os.path.realpath(workspace))
    except ToolFailed:
        return ""
    new = wanted.content.encode(encoding, "replace")
    return backups.diff(old, new, paths.display_path(relative))


def bind(wanted: WriteFileArguments, workspace: Path) -> str:
    """The file as it is: of another one, the same content is another change than the card shows."""
    old = _read_old(wanted.path, workspace)
    return "" if old is None else hashlib.sha256(old).hexdigest()


def is_written(wanted: WriteFileArguments, workspace: Path) -> bool:
    """The file has this content already."""
    return _read_old(wanted.path, workspace) == wanted.content.encode(UTF8, "replace")


def _read_old(path: str, workspace: Path) -> bytes | None:
    """Return the file's content, None if there is no writable one."""
    try:
        real = paths.resolve(workspace, path, write=True)
        if paths.status(workspace, real) is None:
            return None
        return backups.content(workspace, path)[0]
    except ToolFailed:
        return None


def entries(wanted: ListFilesArguments, workspace: Path) -> str:
    """Return one line for each entry that fits; links are shown and not followed. Names are escaped
    so that they can be opened, whatever bytes they are made of."""
    why = paths.why_refused(wanted.pattern)
    if why:
        raise ToolFailed(why)
    fitting = Glob(wanted.pattern)
    start = paths.resolve(workspace, wanted.path)
    root = Path(os.path.realpath(workspace))
    if not paths.is_folder(workspace, start):
        raise ToolFailed(f"There is no folder {wanted.path}.")
    lines: list[str] = []
    seen = 0
    for entry in paths.walk(workspace, start, fitting.depth):
        seen += 1
        shown = paths.display_path(entry.path)
        if not fitting.fits(entry.path) and not fitting.fits(shown):
            continue
        if len(lines) == MAX_ENTRIES:
            lines.append(f"[only the first {MAX_ENTRIES:,}; narrow the pattern]")
            break
        path = (start / entry.path).relative_to(root)
        kind = _kind(entry.info.st_mode)
        size = entry.info.st_size if kind == "file" else 0
        lines.append(f"{paths.display_path(path.name)}\t{paths.display_path(path)}\t{kind}\t{size}")
    if seen >= paths.MAX_ENTRIES:
        lines.append(f"[only the first {seen:,} entries were looked at; name a folder]")
    return "\n".join(["name\tpath\ttype\tsize", *lines]) if lines else "Nothing found."


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISLNK(mode):
        return "link"
    return "file" if stat.S_ISREG(mode) else "other"
