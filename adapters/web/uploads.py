"""Files that people attach: kept in one folder, named by a reference that cannot be guessed.

A reference is `<person>/<secret>/<file name>`, which is also its path below the folder. A file's
modification time tells how long it is kept: `KEPT_SECONDS` from the upload on, `GRACE` once it was
fetched. The grace is for a turn that is interrupted before the store knows of its start: it fetches
again.
"""

import asyncio
import contextlib
import mimetypes
import os
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import BinaryIO

from adapters.web.gate import UPLOAD_BYTES, RequestRefused
from gateway import clock
from gateway.messages import Attachment

NAME_LENGTH = 100
KEPT_SECONDS = 30 * 86400.0
GRACE = 3600.0
"""Seconds."""
MAX_KEPT, MAX_FILES = 1 << 30, 2_000
"""Bytes and number of one person's files at once: those sent leave room again after GRACE."""
LIMIT = f"{UPLOAD_BYTES // 1024 // 1024} MB"


class _PersonFiles:
    """One person's files, with those that arrive."""

    def __init__(self, size: int, number: int) -> None:
        self.size, self.number = size, number
        self.arriving = 0

    @contextlib.contextmanager
    def begin(self) -> Iterator["_Arrival"]:
        """Count a file, which stays unless the body fails. RequestRefused if there are too many."""
        if self.number >= MAX_FILES:
            raise RequestRefused(
                413,
                f"You have {self.number:,} uploaded files. Send those, then upload more an hour "
                "later.",
            )
        self.number += 1
        arrival = _Arrival(self)
        try:
            yield arrival
        except BaseException:
            self.number -= 1
            self.size -= arrival.size
            raise


class _Arrival:
    """A file that arrives."""

    def __init__(self, files: _PersonFiles) -> None:
        self._files = files
        self.size = 0

    def add(self, size: int) -> None:
        """Count bytes that arrived. RequestRefused beyond UPLOAD_BYTES, and beyond MAX_KEPT of its
        person."""
        self.size += size
        self._files.size += size
        if self.size > UPLOAD_BYTES:
            raise RequestRefused(413, f"The file is larger than {LIMIT}. Send a smaller one.")
        if self._files.size > MAX_KEPT:
            raise RequestRefused(
                413,
                f"Your uploaded files have over {MAX_KEPT >> 30} GB. Send those, then upload more "
                "an hour later.",
            )


class Uploads:
    """The uploads folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, _PersonFiles] = {}
        """People whose files arrive."""

    async def keep(self, person: str, name: str, chunks: AsyncIterator[bytes]) -> Attachment:
        """Store a file. RequestRefused when empty, over UPLOAD_BYTES, beyond MAX_KEPT or MAX_FILES
        of a person, or when the disk does not take it; nothing stays then."""
        measured = await asyncio.to_thread(_measure, self._folder / person)
        known = self._known.setdefault(person, measured)
        known.arriving += 1
        try:
            with known.begin() as arrival:
                return await self._keep(person, name, chunks, arrival)
        finally:
            known.arriving -= 1
            if not known.arriving:
                del self._known[person]

    async def _keep(
        self, person: str, name: str, chunks: AsyncIterator[bytes], arrival: _Arrival
    ) -> Attachment:
        ref = f"{person}/{clock.secret_id()}/{file_name(name)}"
        path = self._folder / ref
        try:
            await asyncio.to_thread(path.parent.mkdir, parents=True)
            await _write(path, chunks, arrival)
            _keep_for(path, KEPT_SECONDS)
        except OSError as error:
            await asyncio.to_thread(shutil.rmtree, path.parent, ignore_errors=True)
            raise RequestRefused(
                503,
                f"The file could not be kept ({error.strerror}). Free some disk "
                "space and send it again.",
            ) from error
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, path.parent, ignore_errors=True)
            raise
        return _attachment(ref, arrival.size)

    def find(self, person: str, ref: str) -> Attachment:
        """Return the file that `person` uploaded as `ref`; refused if there is none."""
        path = self._path(ref)
        if path is None or not ref.startswith(f"{person}/") or not path.is_file():
            raise RequestRefused(404, f"There is no uploaded file {ref[:80]!r}. Upload it again.")
        return _attachment(ref, path.stat().st_size)

    async def copy(self, ref: str, to: BinaryIO) -> None:
        """Copy the file to `to`, and keep it for GRACE only; FileNotFoundError if there is none."""
        path = self._path(ref)
        if path is None:
            raise FileNotFoundError(ref)
        await asyncio.to_thread(_copy, path, to)
        _keep_for(path, GRACE)

    async def sweep(self) -> int:
        """Delete expired files; return how many."""
        return await asyncio.to_thread(self._sweep, clock.now() - KEPT_SECONDS)

    def _sweep(self, before: float) -> int:
        old = [path for path in self._folder.glob("*/*/*") if path.stat().st_mtime < before]
        for path in old:
            shutil.rmtree(path.parent, ignore_errors=True)
        return len(old)

    def _path(self, ref: str) -> Path | None:
        parts = ref.split("/")
        if len(parts) != 3 or "\0" in ref or any(part in ("", ".", "..") for part in parts):
            return None
        return self._folder / ref


def _measure(folder: Path) -> _PersonFiles:
    """Measure the files in it; what is removed meanwhile may count or not."""
    found = _PersonFiles(0, 0)
    for inner, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                found.size += os.stat(Path(inner, name)).st_size
                found.number += 1
    return found


def _copy(path: Path, to: BinaryIO) -> None:
    with path.open("rb") as file:
        shutil.copyfileobj(file, to)


def _keep_for(path: Path, seconds: float) -> None:
    """Set the file's time so that it is KEPT for `seconds` from now."""
    at = clock.now() - KEPT_SECONDS + seconds
    os.utime(path, (at, at))


def file_name(name: str) -> str:
    """`name` as one that every file system takes; its ending stays."""
    last = re.split(r"[/\\]", name)[-1]
    clean = re.sub(r"[^\w.@ ()+-]", "_", last).strip(" .") or "file"
    stem, dot, ending = clean.rpartition(".")
    if len(ending) > 12 or not stem:
        stem, dot, ending = clean, "", ""
    room = NAME_LENGTH - len(ending) - 1
    while len(stem.encode()) > room:
        stem = stem[:-1]
    return stem + dot + ending


def _attachment(ref: str, size: int) -> Attachment:
    name = ref.rpartition("/")[2]
    mime = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Attachment(ref=ref, name=name, mime=mime, size=size)


async def _write(path: Path, chunks: AsyncIterator[bytes], arrival: _Arrival) -> None:
    with await asyncio.to_thread(path.open, "wb") as file:
        async for chunk in chunks:
            arrival.add(len(chunk))
            await asyncio.to_thread(file.write, chunk)
    if not arrival.size:
        raise RequestRefused(400, "The file is empty (0 bytes). Choose another one.")
