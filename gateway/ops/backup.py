"""Backups of the data folder: one file with a consistent copy of the database, the other files, and
a manifest of their digests.

A backup is checked completely before it replaces anything. All functions block: they run in a
thread, or in the command line.
"""

import hashlib
import io
import os
import shutil
import sqlite3
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from agent_core import ambient
from agent_core.sandboxes.owners import hold_scratch
from gateway.settings import VERSION

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE = "turnkeeper.db"
FILES = ("secrets.json", "jobs.toml", "replica_id", "audit.key", "discord.json", "turnkeeper.toml")
FOLDERS = ("workspaces", "uploads", "outputs")
SCRATCH = ".turnkeeper-backup-"
STEP = 512
"""Pages of the database that are copied before others get the processor."""
PIECE = 1 << 20
TOLD_EVERY = 1_000

Tell = Callable[[str], None]


class BackupError(Exception):
    """A backup cannot be made or used; the text tells people why."""


class BackupManifest(Struct, frozen=True, kw_only=True):
    """The contents of a backup. `files`: SHA-256 digests by path."""

    format: int
    version: str
    store: str
    made: float
    files: dict[str, str]


def write_backup(home: Path, to: Path, *, database: bool, tell: Tell) -> BackupManifest:
    """Write the backup of `home` into the file `to`, which appears only when it is complete.
    `database`: include the folder's. Leftovers of killed backups are removed first. BackupError."""
    if not to.parent.is_dir():
        raise BackupError(f"There is no folder {to.parent}: make it first, or name another file.")
    try:
        with hold_scratch(to.parent, SCRATCH) as scratch:
            copy, part = scratch / DATABASE, scratch / "part"
            if database:
                copy_database(home / DATABASE, copy, tell)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(part, flags, 0o600), "wb") as file:
                os.fchmod(file.fileno(), 0o600)
                manifest = _write_archive(home, copy if database else None, file, tell)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, to)
    except (OSError, sqlite3.Error, tarfile.TarError) as error:
        raise BackupError(f"The backup could not be written: {error}.") from error
    return manifest


def copy_database(source: Path, to: Path, tell: Tell) -> None:
    """Copy the database as it is now; who writes it meanwhile does not wait. sqlite3.Error."""
    reading = sqlite3.connect(source, isolation_level=None, timeout=10.0)
    writing = sqlite3.connect(to)

    def progress(status: int, left: int, total: int) -> None:
        if left and (total - left) // STEP % 64 == 0:
            tell(f"database: {100 * (total - left) // total} %")

    try:
        # one read transaction from the first page to the last: writers continue in the WAL, and
        # no write restarts the copy
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM sqlite_master").fetchone()
        reading.backup(writing, pages=STEP, progress=progress, sleep=0.0)
        writing.execute("PRAGMA journal_mode = DELETE").fetchone()
    finally:
        writing.close()
        reading.close()


def _write_archive(
    home: Path, database: Path | None, file: IO[bytes], tell: Tell
) -> BackupManifest:
    found: dict[str, str] = {}
    with tarfile.open(fileobj=file, mode="w") as archive:
        if database is not None:
            found[DATABASE] = _add(archive, database, DATABASE)
        for path in _find_files(home):
            name = str(path.relative_to(home))
            try:
                found[name] = _add(archive, path, name)
            except (FileNotFoundError, NotADirectoryError):
                continue  # it was removed meanwhile
            if len(found) % TOLD_EVERY == 0:
                tell(f"files: {len(found)}")
        store = "sqlite" if database is not None else "redis"
        manifest = BackupManifest(
            format=FORMAT, version=VERSION, store=store, made=ambient.now(), files=found
        )
        body = msgspec.json.encode(manifest)
        entry = tarfile.TarInfo(MANIFEST)
        entry.size, entry.mode = len(body), 0o600
        archive.addfile(entry, io.BytesIO(body))
    return manifest


def _find_files(home: Path) -> Iterator[Path]:
    yield from (home / name for name in FILES if (home / name).is_file())
    for folder in FOLDERS:
        for place, folders, files in os.walk(home / folder):
            links = [name for name in folders if os.path.islink(os.path.join(place, name))]
            yield from (Path(place, name) for name in sorted((*files, *links)))


def _add(archive: tarfile.TarFile, path: Path, name: str) -> str:
    """Add a file or a link and return its digest. A file that changes meanwhile is added as it was
    read."""
    entry = tarfile.TarInfo(name)
    info = path.lstat()
    entry.mode, entry.mtime = info.st_mode & 0o700, info.st_mtime
    if path.is_symlink():
        entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(path)
        archive.addfile(entry)
        return hashlib.sha256(entry.linkname.encode(errors="surrogateescape")).hexdigest()
    if not path.is_file():
        raise FileNotFoundError(name)  # not a regular file, but a pipe or a socket
    digest = hashlib.sha256()
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as source, tempfile.TemporaryFile() as copy:
        while piece := source.read(PIECE):
            digest.update(piece)
            entry.size += copy.write(piece)
        copy.seek(0)
        archive.addfile(entry, copy)
    return digest.hexdigest()


def unpack_backup(file: Path, to: Path, tell: Tell) -> BackupManifest:
    """Unpack the backup into the folder `to`, new or empty, and verify it. After a BackupError the
    folder is gone."""
    try:
        to.mkdir(mode=0o700, exist_ok=True)
        try:
            manifest = _unpack(file, to, tell)
        except BaseException:
            shutil.rmtree(to, ignore_errors=True)
            raise
    except OSError as error:
        raise BackupError(f"{file} cannot be used: {error.strerror or error}.") from error
    except (tarfile.TarError, msgspec.MsgspecError, sqlite3.Error) as error:
        raise BackupError(f"{file} cannot be used: {error}.") from error
    return manifest


def _unpack(file: Path, to: Path, tell: Tell) -> BackupManifest:
    found: dict[str, str] = {}
    links: dict[str, str] = {}
    body = b""
    with tarfile.open(file, mode="r:") as archive:
        for entry in archive:
            parts = Path(entry.name).parts
            if entry.name.startswith("/") or ".." in parts or not parts:
                raise BackupError(f"{file} cannot be used: it holds {entry.name!r}.")
            if entry.issym():
                links[entry.name] = entry.linkname
                coded = entry.linkname.encode(errors="surrogateescape")
                found[entry.name] = hashlib.sha256(coded).hexdigest()
                continue
            source = archive.extractfile(entry)
            if source is None:
                raise BackupError(f"{file} cannot be used: it holds {entry.name!r}.")
            if entry.name == MANIFEST:
                body = source.read()
                continue
            found[entry.name] = _write_out(source, to / entry.name, entry)
            if len(found) % TOLD_EVERY == 0:
                tell(f"files: {len(found)}")
    manifest = _check(file, body, found)
    for name, target in links.items():  # last, so that no file is written through a link
        (to / name).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.symlink(target, to / name)
    if DATABASE in found:
        _check_database(to / DATABASE)
    return manifest


def _write_out(source: IO[bytes], path: Path, entry: tarfile.TarInfo) -> str:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    digest = hashlib.sha256()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        while piece := source.read(PIECE):
            digest.update(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
        os.fchmod(file.fileno(), entry.mode & 0o700 | 0o600)
    os.utime(path, (entry.mtime, entry.mtime))
    return digest.hexdigest()


def _check(file: Path, body: bytes, found: dict[str, str]) -> BackupManifest:
    if not body:
        raise BackupError(f"{file} is no backup, or only the beginning of one: no manifest.")
    form = msgspec.json.decode(body).get("format")
    if form != FORMAT:
        raise BackupError(
            f"{file} was made by another version (format {form}; this one reads {FORMAT}). Use the "
            "version that made it, or a newer one."
        )
    manifest = msgspec.json.decode(body, type=BackupManifest)
    if manifest.files != found:
        names = {name for name, _ in manifest.files.items() ^ found.items()}
        raise BackupError(f"{file} is damaged: {', '.join(sorted(names)[:5])}.")
    return manifest


def _check_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    try:
        (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    finally:
        connection.close()
    if state != "ok":
        raise BackupError(f"Its database is damaged: {state}.")
