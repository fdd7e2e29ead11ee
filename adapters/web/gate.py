"""Access by HTTP: Host and Origin, sessions, one-time links, the API token. The rules are plain
functions of header values.

A foreign page cannot reach us by a name of its own (DNS rebinding: every request's Host is
checked), cannot post with our cookie (Origin), cannot frame us or make us load or send anything
elsewhere, nor look up the names of links that are only shown (HEADERS).
"""

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from adapters.web.attempts import FailedAttempts, is_loopback
from adapters.web.sessions import SessionBook
from gateway import clock

OWNER = "owner"
SESSION_SECONDS = 30 * 86400
LINK_SECONDS = 600
JSON_BYTES = 1024 * 1024
UPLOAD_BYTES = 25 * 1024 * 1024

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
PERSON = re.compile(r"[A-Za-z0-9@._-]{1,64}")

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-DNS-Prefetch-Control": "off",
    "Cache-Control": "no-store",
}


class RequestRefused(Exception):
    """A refused request: HTTP `status`, and what happened and what to do; `wait`: seconds until it
    may be repeated."""

    def __init__(self, status: int, reason: str, wait: int = 0) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.wait = wait


class Visitor(Struct, frozen=True, kw_only=True):
    """The person of a request, and their session; "" with the API token."""

    person: str
    session: str = ""


FOREIGN = "This request comes from another site. Open the chat itself."

Count: TypeAlias = Callable[[str], None]
"""Adds one to a counter of this name."""
Redeem: TypeAlias = Callable[[str], Awaitable[str]]
"""Uses up a link from a chat and returns its person; "" if it is not valid."""


def count_nothing(name: str) -> None:
    """Count nothing: the default without counters."""


async def redeem_nothing(token: str) -> str:
    """Return "": the default without links from chats."""
    return ""


class RequestGate:
    """The rules for one listening address. `host` and `port` are what the server listens on;
    `names` the names (with a port unless it is ours or the scheme's) by which people reach it;
    `secret` signs sessions and links and is the same in every process that shares them, and so is
    `book`. `api_token` is the owner's bearer token; `count` counts refusals; `redeem` knows the
    links from chats."""

    def __init__(  # noqa: PLR0913 - a setting each
        self,
        secret: bytes,
        book: SessionBook,
        host: str,
        port: int,
        *,
        names: Sequence[str] = (),
        api_token: str | None = None,
        count: Count = count_nothing,
        redeem: Redeem = redeem_nothing,
    ) -> None:
        if len(secret) < 16:
            raise ValueError("the web secret needs at least 16 bytes")
        self._secret, self.book = secret, book
        self._port = port
        self._wildcard = host in ("", "0.0.0.0", "::")
        self._names = frozenset(at for name in names for at in _with_port(name.lower(), port))
        own = (*LOOPBACK_NAMES, f"[{host}]" if ":" in host else host)
        self._hosts = self._names | {at for name in own if name for at in _with_port(name, port)}
        self._api_token = api_token
        self._loopback = is_loopback(host)
        self._attempts, self._count = FailedAttempts(), count
        self._redeem_elsewhere = redeem
        self.cookie = f"turnkeeper_{port}"

    def check(self, method: str, headers: Mapping[str, str]) -> None:
        """Refuse a foreign Host or Origin, and browser requests made by a page of another site."""
        host = headers.get("Host", "").lower()
        if host not in self._hosts and not (self._wildcard and self._address(host)):
            raise RequestRefused(
                403,
                f"This address ({host[:80]}) is not served here. Open the chat by "
                "its own address, or add the name to the web names in the settings.",
            )
        if _comes_from_elsewhere(method, headers):
            raise RequestRefused(403, FOREIGN)
        origin = headers.get("Origin")
        if origin is not None:
            if not self._own_origin(origin, host):
                raise RequestRefused(403, FOREIGN)
        elif (
            method not in ("GET", "HEAD")
            and headers.get("Sec-Fetch-Site", "") != "same-origin"
            and not _bearer(headers)
        ):
            raise RequestRefused(
                403,
                "This request does not say where it comes from. Send an Origin "
                "header, or an API token.",
            )

    def check_metrics(self, headers: Mapping[str, str], address: str) -> None:
        """Refuse whoever may not see /metrics: where others reach it, it needs the token."""
        if not self._loopback or _bearer(headers):
            self._check_token(_bearer(headers), address)
        elif headers.get("Host", "").lower() not in self._hosts - self._names:
            raise RequestRefused(
                403, "This is shown on this machine only. Send the API token, or ask from here."
            )

    async def identify(self, headers: Mapping[str, str], cookie: str, address: str) -> Visitor:
        """Return the visitor; a bearer token, once given, decides alone. `address`: the
        client's."""
        bearer = _bearer(headers)
        if bearer:
            self._check_token(bearer, address)
            return Visitor(person=OWNER)
        person, _, session = self._read("session", cookie)[0].rpartition(".")
        if not person or not await self.book.is_open(person, session):
            raise RequestRefused(
                401,
                "You are not signed in. Run `turnkeeper link` where the gateway "
                "runs and open the link that it prints.",
            )
        return Visitor(person=person, session=session)

    async def begin_session(self, person: str, device: str = "") -> str:
        """A session cookie's value for `person`, good for SESSION_SECONDS or until it is ended."""
        new = await self.book.begin(person, device, SESSION_SECONDS)
        return self._sign("session", f"{person}.{new.id}", new.expires)

    def issue(self, person: str) -> str:
        """A token for `/signin/<token>`: works once, for LINK_SECONDS.

        Any process with the same secret may issue it. ValueError for a name we cannot keep."""
        if not PERSON.fullmatch(person):
            raise ValueError(f"a web person is 1 to 64 letters, digits and @._-, not {person!r}")
        expires = int(clock.now()) + LINK_SECONDS
        return self._sign("link", f"{person}.{clock.secret_id()}", expires)

    async def redeem(self, token: str, address: str = "") -> str:
        """Return the person of this one-time link; refused if used, late or not ours. `address`:
        the client's."""
        self._check_pace(address)
        subject, expires = self._read("link", token)
        person, _, nonce = subject.rpartition(".")
        if not person or not await self.book.claim_link(nonce, expires):
            raise self._note_failure(
                address,
                "This sign-in link was used already or is too old. Run `turnkeeper "
                "link` for a new one.",
            )
        self._attempts.trust(address)
        return person

    async def redeem_from_chat(self, token: str, address: str = "") -> str:
        """Redeem like `redeem`, for a link from a chat."""
        self._check_pace(address)
        person = await self._redeem_elsewhere(token)
        if not person:
            raise self._note_failure(
                address,
                "This sign-in link was used already or is too old. Write /link page in the chat "
                "for a new one.",
            )
        self._attempts.trust(address)
        return person

    def _check_token(self, bearer: str, address: str) -> None:
        self._check_pace(address)
        if not self._api_token or not bearer or not _is_same(bearer, self._api_token):
            raise self._note_failure(
                address, "The API token is wrong. Take it from the gateway's settings."
            )
        self._attempts.trust(address)

    def _check_pace(self, address: str) -> None:
        """Refuse a try, unseen, of an address with too many wrong ones."""
        if not self._attempts.is_trusted(address) and self._attempts.find_wait(address):
            raise self._note_failure(address, "")

    def _note_failure(self, address: str, reason: str) -> RequestRefused:
        """Count a wrong try; how it is refused."""
        self._count("sign_ins_failed")
        slowed = self._attempts.find_wait(address) > 0
        self._attempts.fail(address)
        if not slowed:
            return RequestRefused(401, reason)
        wait = self._attempts.find_wait(address)
        self._count("sign_ins_slowed")
        return RequestRefused(
            429,
            f"Too many wrong tokens or links came from your address. Wait {wait} s, then try "
            "the right one.",
            wait,
        )

    def _sign(self, use: str, subject: str, expires: int) -> str:
        text = f"{subject}.{expires}"
        return f"{text}.{self._mac(use, text)}"

    def _read(self, use: str, value: str) -> tuple[str, int]:
        """Return the subject and the end of a value made by `_sign`; ("", 0) if it has expired."""
        text, _, mac = value.rpartition(".")
        if not _is_same(mac, self._mac(use, text)):
            return "", 0
        subject, _, expires = text.rpartition(".")
        return (subject, int(expires)) if clock.now() < int(expires) else ("", 0)

    def _mac(self, use: str, text: str) -> str:
        data = f"{use}:{text}".encode(errors="replace")
        return hmac.new(self._secret, data, hashlib.sha256).hexdigest()

    def _own_origin(self, origin: str, host: str) -> bool:
        """Return True if it is the origin of `host`, or one of our names behind a proxy that
        changes the Host. Another port of that very Host is a different server."""
        scheme, _, at = origin.lower().partition("://")
        if scheme not in ("http", "https"):
            return False
        bare = _strip_port(host)
        return at == host or (at in self._names and (host == bare or _strip_port(at) != bare))

    def _address(self, host: str) -> bool:
        """`host` is an IP address at our port: no name that someone else could point at us."""
        try:
            parts = urlsplit(f"//{host}")
            ipaddress.ip_address(parts.hostname or "")
            return (parts.port or 80) == self._port
        except ValueError:
            return False


def _with_port(name: str, port: int) -> tuple[str, ...]:
    """The Host values of `name`: without a port only where a proxy or port 80 leaves it out."""
    if name in LOOPBACK_NAMES:
        return (f"{name}:{port}", name) if port == 80 else (f"{name}:{port}",)
    return name, f"{name}:{port}"


def _strip_port(host: str) -> str:
    return re.sub(r":\d*$", "", host)


def is_from_another_site(headers: Mapping[str, str]) -> bool:
    """A browser says that a page of another origin made it ask."""
    return headers.get("Sec-Fetch-Site", "") in ("cross-site", "same-site")


def _comes_from_elsewhere(method: str, headers: Mapping[str, str]) -> bool:
    """Return True if a browser declares that a page of another origin made the request, except for
    a navigation. Otherwise a page at another port of this machine could measure what a search
    finds."""
    if not is_from_another_site(headers):
        return False
    leads = headers.get("Sec-Fetch-Mode"), headers.get("Sec-Fetch-Dest")
    return method not in ("GET", "HEAD") or leads != ("navigate", "document")


def _bearer(headers: Mapping[str, str]) -> str:
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _is_same(left: str, right: str) -> bool:
    return hmac.compare_digest(left.encode(errors="replace"), right.encode(errors="replace"))
