"""Backups of files before their changes, and the tool rollback, which goes back step by step.

They are beside each other in the gateway's folder, by path and time: `<path>.<time>`, the file
before a write; `<path>.<time>.new`, empty: there was no file; `<path>.<time>.undone`, what a
rollback replaced. A rollback restores the newest step and uses it up; what it replaced is kept for
people and for read_file, and is no step, so that the next rollback goes further back.
"""

import asyncio
import difflib
import os
import re
import stat
from pathlib import Path

from msgspec import Struct
from pydantic import BaseModel

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.messages import ToolOutput
from agent_core.tools import paths
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.encodings import decode_text, find_encoding

MAX_STEPS = 20
"""Steps that are kept of a file, and undone states."""
MAX_BYTES = 64_000_000
MAX_DIFF = 4_000
"""Characters of a diff that are shown."""

_MARK = re.compile(r"\.(\d{8}T\d{6}\.\d{6})(\.new|\.undone)?")
_TIME = "%Y%m%dT%H%M%S.%f"


class RollbackArguments(BaseModel):
    """Arguments of rollback."""

    path: str


class _Step(Struct, frozen=True, kw_only=True):
    """A kept state; `name` of its file, `content` None: there was no file."""

    name: str
    content: bytes | None


def rollback_tool() -> Tool:
    """Make the tool rollback, over the backups of write_file."""

    async def call(wanted: RollbackArguments, context: ToolContext) -> ToolOutput:
        said = await asyncio.to_thread(roll_back, wanted, context.workspace)
        return ToolOutput(text=said, changed=(wanted.path,))

    return Tool(
        name="rollback",
        description="Undo the last write_file on a file; again, the one before.",
        arguments=RollbackArguments,
        repetition="effect",
        access="write",
        call=call,
        bind=bind,
        preview=preview,
    )


def roll_back(wanted: RollbackArguments, workspace: Path) -> str:
    """Restore the file's previous step; describe it, with the diff."""
    real, relative = _place(workspace, wanted.path)
    named = paths.display_path(relative)
    step = _find_newest(workspace, relative)
    if step is None:
        raise ToolFailed(
            f"There is no older state of {named}. write_file keeps {MAX_STEPS} of them."
        )
    there = paths.status(workspace, real) is not None
    old, mode = content(workspace, wanted.path) if there else (None, 0o644)
    place = _folder(workspace, relative)
    try:
        if old == step.content:
            paths.remove(workspace, place / step.name)
            return f"{named} is what it was before that write already; nothing changed."
        kept = keep(workspace, relative, old, ".undone") if old is not None else ""
        if step.content is None:
            paths.remove(workspace, real)
        else:
            store(workspace, real, step.content, mode)
        paths.remove(workspace, place / step.name)
    except OSError as error:
        raise paths.as_tool_failure(wanted.path, error) from error
    verb = "Removed" if step.content is None else "Restored"
    undone = f" What it replaced is in {paths.display_path(kept)}." if kept else ""
    shown = diff(old or b"", step.content or b"", named)
    return f"{verb} {named}.{undone}\n{shown}"


def go_back(path: str, workspace: Path, since: float, most: int) -> bool:
    """Restore the file from before its writes after `since` (seconds since 1970). Idempotent.
    Return False, and change nothing, if that is unknown: a step is not kept any more, or more than
    `most` writes came after `since`, so others wrote too."""
    relative = _place(workspace, path)[1]
    names, stamp = _steps(workspace, relative), ambient.utc(since).strftime(_TIME)
    after = [name for name in names if name[len(relative.name) + 1 :] >= stamp]
    if len(after) > most or (len(after) == len(names) == MAX_STEPS and most > MAX_STEPS):
        return False
    for _ in after:
        roll_back(RollbackArguments(path=path), workspace)
    return True


def preview(wanted: RollbackArguments, workspace: Path) -> str:
    """The diff that a rollback would make, for the approval card."""
    try:
        real, relative = _place(workspace, wanted.path)
        step = _find_newest(workspace, relative)
        there = paths.status(workspace, real) is not None
        old = content(workspace, wanted.path)[0] if there else b""
    except ToolFailed:
        return ""
    return diff(old, step.content or b"", paths.display_path(relative)) if step is not None else ""


def bind(wanted: RollbackArguments, workspace: Path) -> str:
    """The step that would be taken: another write in between makes it another call."""
    try:
        names = _steps(workspace, _place(workspace, wanted.path)[1])
    except ToolFailed:
        return ""
    return names[-1] if names else ""


def keep(workspace: Path, relative: Path, old: bytes | None, kind: str = "") -> Path:
    """Back up the file `relative` as it is now (None: missing) as the newest of MAX_STEPS. Return
    the backup's path."""
    place = _folder(workspace, relative)
    stamp = ambient.utc(ambient.now()).strftime(_TIME)
    known = _list_states(paths.list_names(workspace, place), relative.name)
    newest = max((at for at, _, _ in known), default="")
    if stamp <= newest:
        stamp = _next(newest)
    kind = kind or (".new" if old is None else "")
    kept = place / f"{relative.name}.{stamp}{kind}"
    store(workspace, kept, old or b"", 0o600)
    undone = kind == ".undone"
    same = sorted(name for _, other, name in known if (other == ".undone") is undone)
    for name in same[: max(0, len(same) + 1 - MAX_STEPS)]:
        paths.remove(workspace, place / name)
    return kept.relative_to(os.path.realpath(workspace))


def content(workspace: Path, path: str) -> tuple[bytes, int]:
    """The file's content and permissions."""
    with paths.open_read(workspace, path) as file:
        info = os.fstat(file.fileno())
        if info.st_size > MAX_BYTES:
            raise ToolFailed(f"{path} has {info.st_size:,} bytes, too many to keep a backup of.")
        return file.read(), stat.S_IMODE(info.st_mode)


def store(workspace: Path, real: Path, data: bytes, mode: int) -> None:
    """An unfinished file, on disk, then its name: never half a file."""
    temporary = paths.temporary_name()
    root = Path(os.path.realpath(workspace))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with (
        paths.folder(workspace, real.parent, create=True) as parent,
        paths.open_unfinished(workspace) as unfinished,
    ):
        with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=unfinished), "wb") as file:
            try:
                file.write(data)
                file.flush()
                os.fchmod(file.fileno(), mode & 0o777)
                if (owner := paths.status(workspace, root)) is not None:
                    paths.give(file.fileno(), owner, real.relative_to(root).parts[0])
                os.fsync(file.fileno())
                os.replace(temporary, real.name, src_dir_fd=unfinished, dst_dir_fd=parent)
            except OSError:
                os.unlink(temporary, dir_fd=unfinished)
                raise
        os.fsync(parent)


def diff(old: bytes, new: bytes, name: str) -> str:
    """The unified diff, cut at MAX_DIFF characters with a count."""
    if not find_encoding(old) or len(old) + len(new) > 2_000_000:
        return f"[{len(old):,} bytes before, {len(new):,} after; no diff]"
    before, after = (decode_text(data).splitlines() for data in (old, new))
    if len(before) + len(after) > 20_000:
        return f"[{len(before):,} lines before, {len(after):,} after; no diff]"
    text = "\n".join(difflib.unified_diff(before, after, name, name, lineterm=""))
    if len(text) <= MAX_DIFF:
        return text
    return f"{text[:MAX_DIFF]}\n[… {len(text) - MAX_DIFF} characters of the diff left out]"


def _place(workspace: Path, path: str) -> tuple[Path, Path]:
    real = paths.resolve(workspace, path, write=True)
    return real, real.relative_to(os.path.realpath(workspace))


def _folder(workspace: Path, relative: Path) -> Path:
    return Path(os.path.realpath(workspace)) / paths.OWN / "backups" / relative.parent


def _list_states(names: list[str], name: str) -> list[tuple[str, str, str]]:
    """(time, kind, name) of the states of the file `name` that are kept, in any order."""
    return [
        (mark[1], mark[2] or "", one)
        for one in names
        if one.startswith(name) and (mark := _MARK.fullmatch(one, len(name)))
    ]


def _steps(workspace: Path, relative: Path) -> list[str]:
    """Names of the states that a rollback may go back to, the newest last."""
    known = _list_states(paths.list_names(workspace, _folder(workspace, relative)), relative.name)
    return [name for _, kind, name in sorted(known) if kind != ".undone"]


def _find_newest(workspace: Path, relative: Path) -> _Step | None:
    names = _steps(workspace, relative)
    if not names:
        return None
    if names[-1].endswith(".new"):
        return _Step(name=names[-1], content=None)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with paths.folder(workspace, _folder(workspace, relative)) as folder:
        try:
            descriptor = os.open(names[-1], flags, dir_fd=folder)
        except OSError as error:
            raise paths.as_tool_failure(names[-1], error) from None
    with open(descriptor, "rb") as file:
        paths.check(os.fstat(file.fileno()), names[-1])
        return _Step(name=names[-1], content=file.read(MAX_BYTES))


def _next(stamp: str) -> str:
    """Return a stamp one microsecond later, so that states keep their order whatever the clock
    does."""
    day, _, rest = stamp.partition("T")
    seconds, _, micro = rest.partition(".")
    if micro == "999999":
        return f"{day}T{int(seconds) + 1:06}.000000"
    return f"{day}T{seconds}.{int(micro) + 1:06}"
