"""Access to previews of apps: unopened links, and opened previews.

Both survive a restart, in one file that is written completely before anybody is told. It holds only
digests of the secrets, so that a reader of the file, or of a copy, gets in nowhere. A link is
marked as used there before its preview is handed over: a kill in between uses it up, and never
leaves it valid twice.
"""

import asyncio
import hashlib
import logging
import os
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core import ambient

log = logging.getLogger("turnkeeper.previews")

LINK_LIFE, SESSION_LIFE = 1_800.0, 1_800.0
"""Seconds that a link waits to be opened; seconds without a request until its cookie is no good."""
MAX_OPEN = 200
TOUCHED = 60.0
"""Seconds of use that the file may not know of."""
NAME = "previews.json"


class OpenPreview(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A server in a sandbox that may be seen `until` then. `workspace`: its folder, relative to the
    book. `start`: the command that starts it, "" if nothing restarts it."""

    workspace: str
    port: int
    until: float
    start: str = ""


class _Pages(Struct, kw_only=True):
    """The stored state. `port`: the last port listened at."""

    port: int = 0
    links: dict[str, OpenPreview] = {}
    sessions: dict[str, OpenPreview] = {}


_NOTHING = msgspec.json.encode(_Pages())


class PreviewBook:
    """`home`: the folder of its file and of workspaces; None: it is kept in memory alone."""

    def __init__(self, home: Path | None = None) -> None:
        self._home = home
        self._pages = _Pages()
        self._writing = asyncio.Lock()

    @property
    def port(self) -> int:
        """The port to which possibly valid links lead, 0 if there is none."""
        _forget_old(self._pages.links)
        _forget_old(self._pages.sessions)
        return self._pages.port if self._pages.links or self._pages.sessions else 0

    def load(self) -> None:
        """Read the state of an earlier process, without expired entries. Blocks."""
        if self._home is None:
            return
        try:
            data = (self._home / NAME).read_bytes()
            self._pages = msgspec.json.decode(data, type=_Pages)
            if not self.port and data != _NOTHING:
                self._pages = _Pages()
                _write(self._home / NAME, _NOTHING)
        except FileNotFoundError:
            return
        except (OSError, msgspec.DecodeError, RecursionError) as error:
            log.warning("previews_unreadable", extra={"why": str(error)})

    async def add(self, workspace: Path, port: int, start: str, listens: int) -> str:
        """The word of a new link to the server at `port`. `listens`: where it leads. OSError."""
        word, links = ambient.secret_id(), self._pages.links
        made = OpenPreview(
            workspace=self._name(workspace), port=port, until=ambient.now() + LINK_LIFE, start=start
        )
        _forget_old(links)
        links[_digest(word)] = made
        self._pages.port = listens
        await self._save()
        return word

    def has_link(self, word: str) -> bool:
        """The link is good."""
        return _is_good(self._pages.links.get(_digest(word)))

    async def take(self, word: str) -> str:
        """Exchange a link's secret for a cookie, once; "" if it is not valid. OSError."""
        made = self._pages.links.get(_digest(word))
        if made is None or not _is_good(made):
            return ""
        del self._pages.links[_digest(word)]
        secret, sessions = ambient.secret_id(), self._pages.sessions
        _forget_old(sessions)
        sessions[_digest(secret)] = replace(made, until=ambient.now() + SESSION_LIFE)
        try:
            await self._save()
        except OSError:
            del sessions[_digest(secret)]
            self._pages.links[_digest(word)] = made
            raise
        return secret

    async def use(self, secret: str) -> OpenPreview | None:
        """Return the cookie's preview, and extend it; None if it is not valid."""
        sessions, name = self._pages.sessions, _digest(secret)
        known, until = sessions.get(name), ambient.now() + SESSION_LIFE
        if known is None or not _is_good(known):
            return None
        sessions[name] = replace(known, until=until)
        if until - known.until > TOUCHED:
            try:
                await self._save()
            except OSError as error:  # it is shown now; after a restart it may not be
                log.warning("previews_not_saved", extra={"why": str(error)})
        return known

    async def let_lie(self, workspace: Path) -> None:
        """Mark a workspace whose processes a person stopped: nothing restarts them. OSError."""
        name, found = self._name(workspace), False
        for known in (self._pages.links, self._pages.sessions):
            for word, one in known.items():
                if one.workspace == name and one.start:
                    known[word], found = replace(one, start=""), True
        if found:
            await self._save()

    def find(self, preview: OpenPreview) -> Path:
        """Return the workspace, relative to the book's present place."""
        return (self._home or Path("/")) / preview.workspace

    def _name(self, workspace: Path) -> str:
        whole = Path(os.path.realpath(workspace))
        home = os.path.realpath(self._home) if self._home is not None else "/"
        return str(whole.relative_to(home) if whole.is_relative_to(home) else whole)

    async def _save(self) -> None:
        if self._home is not None:
            async with self._writing:
                await asyncio.to_thread(_write, self._home / NAME, msgspec.json.encode(self._pages))


def _digest(word: str) -> str:
    return hashlib.sha256(word.encode()).hexdigest()


def _is_good(one: OpenPreview | None) -> bool:
    return one is not None and one.until >= ambient.now()


def _forget_old(known: dict[str, OpenPreview]) -> None:
    for word in [word for word, one in known.items() if not _is_good(one)]:
        del known[word]
    while len(known) >= MAX_OPEN:
        del known[next(iter(known))]


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
