"""The copy of a workspace at E2B; the workspace's folder is the truth.

Changes of the workspace are sent before a command starts; changes made by the command are fetched
when it has ended. Data from there is untrusted: names are checked, and no link is followed. Files
with secrets are not sent, and what programs install (`node_modules`, `.venv`) is copied in neither
direction.
"""

import asyncio
import base64
import hashlib
import io
import json
import os
import stat
import tarfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import e2b
import msgspec
from e2b.sandbox.filesystem.filesystem import WriteEntry
from msgspec import Struct

from agent_core.errors import ToolFailed
from agent_core.sandboxes.e2b.client import E2BUnavailable, RemoteBox, translate_errors
from agent_core.sandboxes.masks import SecretFiles
from agent_core.sandboxes.states.file_states import CACHES
from agent_core.tools import paths

FOLDER = ".turnkeeper"
"""The folder of the gateway's programs, in HOME there."""
MAX_FILE, MAX_ALL = 100 << 20, 256 << 20
MAX_NAME, MAX_PARTS = 4_000, 100
SECONDS_TO_CARRY = 120.0
_OURS = ".from-sandbox"
_LEFT = "[Too large to be brought from the sandbox to the workspace: {names}.]"
_TWICE = (
    "[Changed in the workspace while the command ran, and by the command: {names}. The workspace's "
    "stay; the command's are beside them, as {ending}.]"
)
_FAULTY = "[Not brought from the sandbox to the workspace: {names}.]"


class LocalState(Struct, frozen=True, array_like=True):
    """The state of a path in the workspace, with a signature that detects changes."""

    kind: str
    mode: int
    size: int
    changed: int
    inode: int


class _Collected(Struct, frozen=True):
    """An answer of files.py: the changes there."""

    number: int
    removed: list[str]
    left: list[str]
    packed: str | None


class WorkspaceCopy:
    """Carries files between a workspace and its copy. One at a time: callers take turns."""

    def __init__(self, box: RemoteBox, workspace: Path, hidden: SecretFiles) -> None:
        self._box, self._workspace, self._hidden = box, workspace, hidden
        self._known: dict[str, LocalState] = {}
        self._number = 0
        self._untold = ""
        self._turn = asyncio.Lock()

    async def mirror(self) -> None:
        """Make the copy equal to the workspace. ToolFailed, BoxGone."""
        async with self._turn:
            found = await asyncio.to_thread(self._scan)
            states = await asyncio.to_thread(self._describe, found)
            manifest = {"avoided": sorted(CACHES), "files": states}
            await self._put(manifest=json.dumps(manifest).encode())
            wanted = msgspec.convert(await self._run("compare", 0), list[str])
            packed = await asyncio.to_thread(self._pack, wanted)
            await self._put(packed=packed, removed=b"[]")
            await self._run("apply", 0)
            self._known, self._number = found, 0

    async def send(self) -> None:
        """Fetch changes made in the background, then send changes of the workspace. ToolFailed,
        BoxGone."""
        async with self._turn:
            self._untold = await self._fetch()
            await self._send()

    async def fetch(self) -> str:
        """Fetch the copy's changes into the workspace; return notes for the model. ToolFailed,
        BoxGone."""
        async with self._turn:
            told, self._untold = self._untold, ""
            return "\n".join(filter(None, (told, await self._fetch())))

    async def _fetch(self) -> str:
        answer = msgspec.convert(await self._run("collect", self._number), _Collected)
        data = await self._load(answer)
        note = await asyncio.to_thread(self._bring, answer, data)
        self._number = answer.number
        return note

    async def _send(self) -> None:
        found = await asyncio.to_thread(self._scan)
        changed = [path for path, state in found.items() if self._known.get(path) != state]
        removed = [path for path in self._known if path not in found]
        if changed or removed:
            packed = await asyncio.to_thread(self._pack, changed)
            await self._put(packed=packed, removed=json.dumps(removed).encode())
            await self._run("apply", 1)
            self._known = found

    # ---- there -------------------------------------------------------------------------------

    async def _put(self, **files: bytes) -> None:
        await put_files(self._box, files)

    async def _run(self, word: str, number: int) -> object:
        """Return the answer of files.py."""
        command = f"python3 -I -S -B ~/{FOLDER}/files.py {word} {number}"
        try:
            async with translate_errors():
                done = await self._box.commands.run(command, timeout=SECONDS_TO_CARRY)
            return msgspec.json.decode(done.stdout)
        except e2b.CommandExitException as error:
            words = error.stderr.strip().rpartition("\n")[2][:300]
            raise ToolFailed(f"Files are not carried to or from the sandbox: {words}.") from None
        except (msgspec.DecodeError, RecursionError) as error:
            raise E2BUnavailable(f"The sandbox answers what nobody can read ({error}).") from None

    async def _load(self, answer: _Collected) -> bytes:
        if answer.packed is not None:
            return base64.b64decode(answer.packed)
        held, path = io.BytesIO(), f"{FOLDER}/changed"
        async with translate_errors():
            pieces = await self._box.files.read(path, format="stream")
            async for piece in pieces:
                if held.tell() + len(piece) > 2 * MAX_ALL:
                    await pieces.aclose()
                    raise ToolFailed("The sandbox's files are more than it said.")
                held.write(piece)
        return held.getvalue()

    # ---- here --------------------------------------------------------------------------------

    def _scan(self) -> dict[str, LocalState]:
        """Return the files to send, by path. Blocks."""
        root = Path(os.path.realpath(self._workspace))
        hidden = self._hidden
        found: dict[str, LocalState] = {}
        for entry in paths.walk(root, root, MAX_PARTS, CACHES):
            if any(part in CACHES for part in entry.path.split("/")):
                continue
            if entry.path in hidden.changed or any(
                entry.path.startswith(f"{one}/") for one in hidden.folders
            ):
                continue
            if state := _describe_entry(entry.info):
                found[entry.path] = state
        return found

    def _describe(self, found: Mapping[str, LocalState]) -> dict[str, list[object]]:
        """The states as files.py has them. Blocks."""
        described: dict[str, list[object]] = {}
        for path, state in found.items():
            digest = ""
            with suppress(OSError, ToolFailed):
                if state.kind == "file":
                    digest = hashlib.sha256(self._read(path)).hexdigest()
                elif state.kind == "link":
                    digest = paths.read_link(self._workspace, self._place(path))
                described[path] = [state.kind, state.mode, digest]
        return described

    def _pack(self, wanted: Iterable[str]) -> bytes:
        """Pack these paths as a tar. Blocks."""
        held = io.BytesIO()
        with tarfile.open(fileobj=held, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path in wanted:
                with suppress(OSError, ToolFailed):
                    self._add(tar, path)
                if held.tell() > MAX_ALL:
                    raise ToolFailed(
                        f"Not run: the workspace has more than {MAX_ALL >> 20} MB to be carried "
                        "to the sandbox. Remove what is not needed, or ask the operator for "
                        "another tier."
                    )
        return held.getvalue()

    def _add(self, tar: tarfile.TarFile, path: str) -> None:
        place = self._place(path)
        info = paths.status(self._workspace, place)
        if info is None:
            return
        one = tarfile.TarInfo(path)
        one.mode, one.mtime = stat.S_IMODE(info.st_mode), int(info.st_mtime)
        if stat.S_ISREG(info.st_mode):
            data = self._read(path)
            one.size = len(data)
            tar.addfile(one, io.BytesIO(data))
        elif stat.S_ISLNK(info.st_mode):
            one.type, one.linkname = tarfile.SYMTYPE, paths.read_link(self._workspace, place)
            tar.addfile(one)
        elif stat.S_ISDIR(info.st_mode):
            one.type = tarfile.DIRTYPE
            tar.addfile(one)

    def _bring(self, answer: _Collected, data: bytes) -> str:
        """Apply the changes made there. Blocks."""
        twice: list[str] = []
        faulty: list[str] = []
        for path in sorted(filter(_is_name, answer.removed), reverse=True):
            if self._is_touched(path):
                continue
            with suppress(OSError, ToolFailed):
                self._remove(path)
            self._known.pop(path, None)
        for one, content in _unpack(data):
            path = one.name
            if self._is_touched(path) and not one.isdir():
                twice.append(path)
                path = f"{path}{_OURS}"
            try:
                self._put_down(path, one, content)
            except (OSError, ToolFailed):
                faulty.append(one.name)
        notes = (
            _LEFT.format(names=_join(answer.left)) if answer.left else "",
            _TWICE.format(names=_join(twice), ending=f"*{_OURS}") if twice else "",
            _FAULTY.format(names=_join(faulty)) if faulty else "",
        )
        return "\n".join(filter(None, notes))

    def _put_down(self, path: str, one: tarfile.TarInfo, content: bytes) -> None:
        place = self._place(path)
        now = paths.status(self._workspace, place)
        if now is not None and stat.S_IFMT(now.st_mode) != _kind(one):
            self._remove(path)
        if one.isdir():
            with paths.folder(self._workspace, place, create=True):
                pass
        elif one.issym():
            paths.put_link(self._workspace, place, one.linkname)
        else:
            paths.put_file(self._workspace, place, content, one.mode & 0o777)
        info = paths.status(self._workspace, place)
        if info is not None and (state := _describe_entry(info)) and path == one.name:
            self._known[path] = state

    def _is_touched(self, path: str) -> bool:
        """Return True if somebody else changed it here since it was copied."""
        info = paths.status(self._workspace, self._place(path))
        now = _describe_entry(info) if info is not None else None
        return now != self._known.get(path)

    def _remove(self, path: str) -> None:
        place = self._place(path)
        if paths.is_folder(self._workspace, place):
            paths.remove_folder(self._workspace, place)
        else:
            paths.remove(self._workspace, place)

    def _read(self, path: str) -> bytes:
        with paths.open_plain(self._workspace, self._place(path)) as file:
            return file.read(MAX_FILE)

    def _place(self, path: str) -> Path:
        return Path(os.path.realpath(self._workspace)) / path


async def put_files(box: RemoteBox, files: Mapping[str, bytes]) -> None:
    """Write files of the gateway's own folder there. E2BUnavailable, E2BRefused, BoxGone."""
    entries = [WriteEntry(path=f"{FOLDER}/{name}", data=data) for name, data in files.items()]
    async with translate_errors():
        await box.files.write_files(entries, request_timeout=SECONDS_TO_CARRY)


def _describe_entry(info: os.stat_result) -> LocalState | None:
    for kind, fits in (("file", stat.S_ISREG), ("folder", stat.S_ISDIR), ("link", stat.S_ISLNK)):
        if fits(info.st_mode):
            mode = stat.S_IMODE(info.st_mode)
            if kind != "file":
                changed = info.st_ctime_ns if kind == "link" else 0
                return LocalState(kind, mode, 0, changed, info.st_ino)
            return LocalState(kind, mode, info.st_size, info.st_ctime_ns, info.st_ino)
    return None


def _kind(one: tarfile.TarInfo) -> int:
    if one.isdir():
        return stat.S_IFDIR
    return stat.S_IFLNK if one.issym() else stat.S_IFREG


def _unpack(data: bytes) -> Iterable[tuple[tarfile.TarInfo, bytes]]:
    """Yield the members of a tar that may be a file, folder or link of a workspace."""
    if not data:
        return
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            for one in tar:
                if not _is_name(one.name) or not (one.isreg() or one.isdir() or one.issym()):
                    continue
                held = tar.extractfile(one) if one.isreg() else None
                yield one, held.read() if held is not None else b""
    except tarfile.TarError as error:
        raise ToolFailed(f"The sandbox sends files that nobody can read ({error}).") from None


def _is_name(path: str) -> bool:
    """Return True for a path below the workspace that is none of the gateway's own."""
    parts = path.split("/")
    if not path or len(path) > MAX_NAME or len(parts) > MAX_PARTS or "\0" in path:
        return False
    return parts[0] != paths.OWN and not any(part in ("", ".", "..") for part in parts)


def _join(names: Iterable[str]) -> str:
    known = list(names)
    more = f" and {len(known) - 5} more" if len(known) > 5 else ""
    return ", ".join(map(paths.display_path, known[:5])) + more
