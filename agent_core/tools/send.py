"""The tool send_file: sends files of the workspace to the people of the conversation.

A sent file is stored as a copy under its digest, which never changes: a message that is sent after
a restart, or edited a week later, shows what the tool was called with.
"""

import asyncio
import mimetypes
import os
import tempfile
from pathlib import Path
from typing import BinaryIO

from pydantic import BaseModel, Field

from agent_core.context import pictures
from agent_core.errors import ToolFailed
from agent_core.guardrails.file_redaction import FileRedactor, holds_words, read_pieces
from agent_core.guardrails.redaction import NOTHING, Hides
from agent_core.messages import GivenFile, Picture, ToolOutput
from agent_core.tools import paths
from agent_core.tools.contract import Tool, ToolContext

MAX_FILES = 10
MAX_BYTES = 50_000_000
"""Maximum bytes of one file: the Bot API's limit."""
HELD = (
    "{name} contains the value of a secret, and is no text in which its name could stand instead. "
    "It is not sent: leave the value out of it."
)


class SendFileArguments(BaseModel):
    """Arguments of send_file."""

    paths: list[str] = Field(min_length=1, max_length=MAX_FILES)
    caption: str = Field(default="", max_length=4_000)


class FileStore:
    """Copies of sent files, below `folder`, named by their content. `hides`: secrets that no copy
    contains."""

    def __init__(self, folder: Path, hides: Hides = lambda: NOTHING) -> None:
        self._folder = folder
        self._hides = hides

    def keep(self, workspace: Path, path: str) -> GivenFile:
        """Copy `path` of the workspace; ToolFailed if it cannot be sent."""
        with paths.open_read(workspace, path) as file:
            if os.fstat(file.fileno()).st_size > MAX_BYTES:
                raise ToolFailed(f"{path} is larger than {MAX_BYTES // 1_000_000} MB. Cut it up.")
            return self._copy(file, Path(path).name)

    def keep_picture(self, workspace: Path, path: str) -> Picture:
        """Copy a picture that a model can be shown; ToolFailed if it is none."""
        with paths.open_read(workspace, path) as file:
            mime, size = pictures.kind(file.read(12)), os.fstat(file.fileno()).st_size
        if not mime:
            raise ToolFailed(f"{path} is no picture that can be shown: PNG, JPEG, GIF or WebP.")
        if size > pictures.MAX_BYTES:
            most = pictures.MAX_BYTES // 1_000_000
            raise ToolFailed(f"{path} is larger than {most} MB. Make it smaller by a command.")
        given = self.keep(workspace, path)
        return Picture(ref=given.ref, path=path, mime=mime, size=given.size)

    def _copy(self, file: BinaryIO, name: str) -> GivenFile:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        words = self._hides()
        with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as copy:
            try:
                redactor = FileRedactor(words, copy.write)
                for piece in read_pieces(file):
                    redactor.add(piece)
                    if file.tell() > MAX_BYTES:
                        raise ToolFailed(f"{name} grew while it was read. Try again.")
                if not redactor.text and (redactor.is_changed or holds_words(file, words)):
                    raise ToolFailed(HELD.format(name=name))
                copy.flush()
                os.fsync(copy.fileno())
                size, digest = copy.tell(), redactor.digest.hexdigest()
                ref = f"{digest[:2]}/{digest}"
                kept = self._folder / ref
                kept.parent.mkdir(exist_ok=True, mode=0o700)
                os.replace(copy.name, kept)
            except BaseException:
                os.unlink(copy.name)
                raise
        mime = mimetypes.guess_type(name)[0] or "application/octet-stream"
        redacted = redactor.is_changed
        return GivenFile(ref=ref, name=words.hide(name), mime=mime, size=size, redacted=redacted)

    def read(self, ref: str) -> bytes:
        """Read the copy `ref`; OSError if it is gone."""
        return (self._folder / ref).read_bytes()

    def forget(self, before: float) -> int:
        """Remove copies made before `before` (seconds since 1970); how many."""
        old = [copy for copy in self._folder.glob("??/*") if copy.stat().st_mtime < before]
        for copy in old:
            copy.unlink(missing_ok=True)
        return len(old)


def _note(file: GivenFile) -> str:
    return "; names stand in it in place of secrets" if file.redacted else ""


def send_tool(file_store: FileStore) -> Tool:
    """send_file that keeps copies in `file_store`."""

    async def call(wanted: SendFileArguments, context: ToolContext) -> ToolOutput:
        files = [
            await asyncio.to_thread(file_store.keep, context.workspace, path)
            for path in dict.fromkeys(wanted.paths)
        ]
        said = ", ".join(f"{file.name} ({file.size:,} bytes{_note(file)})" for file in files)
        return ToolOutput(
            text=f"Given to the person: {said}.",
            files=tuple(files),
            caption=wanted.caption,
            shown="",  # the files themselves are there
        )

    return Tool(
        name="send_file",
        description="Give files of the workspace to the person; pictures are shown.",
        arguments=SendFileArguments,
        repetition="idempotent",
        access="read",
        call=call,
        limit=300.0,  # a large file is searched several times
    )
