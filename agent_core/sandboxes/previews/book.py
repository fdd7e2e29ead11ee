"""Who may look at which app: links that wait to be opened, and what was opened.

Both outlive the process, in one file that is written whole before anybody is told. Of the words
that open something it holds digests alone, so that who reads the file, or a copy of it, gets in
nowhere. A link is crossed out there before what it opens is handed over: a kill in between uses
it up, and never leaves it good twice.
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
    """A server in a sandbox that somebody may look at, `until` then. `workspace`: its folder, from
    where the book lies. `start`: the command that starts it, "" if nothing starts it again."""

    workspace: str
    port: int
    until: float
    start: str = ""


class _Pages(Struct, kw_only=True):
    """All that is stored. `port`: where it was listened at last."""

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
        """Where links that may still be good lead to, 0 if there is none."""
        _forget_old(self._pages.links)
        _forget_old(self._pages.sessions)
        return self._pages.port if self._pages.links or self._pages.sessions else 0

    def load(self) -> None:
        """Read what an earlier process wrote, and keep what is good of it. Blocks."""
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
        """The cookie that a link is good for, once; "" for none. OSError."""
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
        """What the cookie shows, for a while longer from now; None if it is no good."""
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
        """What runs in this workspace was stopped by a person: nothing starts it again. OSError."""
        name, found = self._name(workspace), False
        for known in (self._pages.links, self._pages.sessions):
            for word, one in known.items():
                if one.workspace == name and one.start:
                    known[word], found = replace(one, start=""), True
        if found:
            await self._save()

    def find(self, preview: OpenPreview) -> Path:
        """The workspace, wherever the book lies now."""
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
