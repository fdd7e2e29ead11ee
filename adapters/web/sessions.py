"""Sessions of the page, and used sign-in links: in the store, for all replicas. A person's sessions
are one document, so that erasing the person removes them."""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import msgspec
from msgspec import Struct

from gateway import clock
from gateway.errors import StoreFailed
from gateway.ports import NoteAudit, note_nowhere

SESSIONS, LINKS = "sessions:web:", "link:"
"""Name prefixes of the documents: a person's sessions, and until when a used link is kept."""
MAX_SESSIONS = 50
"""Sessions of one person; a further one ends the oldest."""
MAX_TRIES = 20
"""Writes of one document against others who write it at the same time."""
DEVICE_LENGTH = 60

_BROWSERS = {
    "Edg": "Edge", "OPR": "Opera", "SamsungBrowser": "Samsung Internet", "Firefox": "Firefox",
    "FxiOS": "Firefox", "CriOS": "Chrome", "Chrome": "Chrome", "Safari": "Safari",
}  # fmt: skip
"""Words of a User-Agent, in order of precedence: later ones occur in all."""
_SYSTEMS = {
    "iPhone": "iPhone", "iPad": "iPad", "Android": "Android", "Windows": "Windows",
    "CrOS": "ChromeOS", "Mac OS X": "macOS", "Linux": "Linux",
}  # fmt: skip


class SignInDocuments(Protocol):
    """Small documents by key, the same for all replicas."""

    async def get(self, key: str) -> bytes | None: ...

    async def put(self, key: str, body: bytes | None, expected: bytes | None = None) -> bool:
        """Write (None: remove); with `expected`, only if it still is that (b"": is not there)."""

    async def keys(self, prefix: str) -> tuple[str, ...]: ...


class WebSession(Struct, frozen=True, kw_only=True):
    """A session of a browser. `began` and `expires` are seconds since 1970."""

    id: str
    device: str
    began: int
    expires: int


Change: TypeAlias = Callable[[tuple[WebSession, ...]], tuple[WebSession, ...]]
_decode = msgspec.json.Decoder(tuple[WebSession, ...]).decode
_encode = msgspec.json.Encoder().encode


class SessionBook:
    """The sessions that are open, and the links that were used."""

    def __init__(self, documents: SignInDocuments, note: NoteAudit = note_nowhere) -> None:
        self._documents = documents
        self._note = note

    async def begin(self, person: str, device: str, seconds: int) -> WebSession:
        """A new session that lasts so long."""
        now = int(clock.now())
        new = WebSession(id=clock.secret_id(), device=device, began=now, expires=now + seconds)
        await self._change(person, lambda known: (*known[1 - MAX_SESSIONS :], new))
        await self._note(f"web:{person}", "signed_in", device)
        return new

    async def find(self, person: str) -> tuple[WebSession, ...]:
        """The open sessions of `person`, the oldest first."""
        body = await self._documents.get(SESSIONS + person)
        return _select_open(body)

    async def is_open(self, person: str, session: str) -> bool:
        """The session was begun, and neither ended nor expired."""
        return any(one.id == session for one in await self.find(person))

    async def end(self, person: str, session: str) -> bool:
        """End a session of `person`; return False if there is none of this id."""
        if not await self.is_open(person, session):
            return False
        await self._change(person, lambda known: tuple(one for one in known if one.id != session))
        await self._note(f"web:{person}", "session_ended", "")
        return True

    async def claim_link(self, nonce: str, until: int) -> bool:
        """Note that a sign-in link was used, which matters until then; False if it was before."""
        now = clock.now()
        for key in await self._documents.keys(LINKS):
            body = await self._documents.get(key)
            if body is not None and float(body) < now:
                await self._documents.put(key, None, body)
        return await self._documents.put(f"{LINKS}{nonce}", str(until).encode(), b"")

    async def _change(self, person: str, change: Change) -> None:
        key = SESSIONS + person
        for _ in range(MAX_TRIES):
            body = await self._documents.get(key)
            new = change(_select_open(body))
            if await self._documents.put(key, _encode(new) if new else None, body or b""):
                return
        raise StoreFailed("the list of sessions is written by many at once")


def name_device(headers: Mapping[str, str]) -> str:
    """Describe a client in a few words: a browser and a system, or the program's own name."""
    agent = headers.get("User-Agent", "")
    browser = next((name for word, name in _BROWSERS.items() if f"{word}/" in agent), "")
    system = next((name for word, name in _SYSTEMS.items() if word in agent), "")
    own = "".join(c for c in agent.partition("/")[0] if c.isascii() and c.isprintable())
    return ", ".join(filter(None, (browser, system))) or own[:DEVICE_LENGTH]


def _select_open(body: bytes | None) -> tuple[WebSession, ...]:
    known = _decode(body) if body else ()
    return tuple(one for one in known if one.expires > clock.now())
