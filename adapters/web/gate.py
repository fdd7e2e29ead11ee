"""Who may come in by HTTP: Host and Origin, sessions, one-time links, the API token.

The rules are plain functions of header values. A page of somebody else cannot reach us by a
name of its own (DNS rebinding: every request's Host is checked), cannot post with our cookie
(Origin), cannot frame us or make us load or send anything elsewhere (HEADERS).
"""

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import urlsplit

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
    "Cache-Control": "no-store",
}


class RequestRefused(Exception):
    """A request that is not served: HTTP `status`, and what happened and what to do."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


Claim: TypeAlias = Callable[[str, int], Awaitable[bool]]
"""Notes that the link with this nonce is used, which matters until then; False if it was before."""


class RequestGate:
    """The rules for one listening address.

    `host` and `port` are what the server listens on; `names` the names (with a port unless it is
    ours or the scheme's) that people reach it by; `secret` signs sessions and links and is the
    same in every process that shares them. `api_token` is the owner's bearer token.
    """

    def __init__(  # noqa: PLR0913 - a setting each
        self,
        secret: bytes,
        host: str,
        port: int,
        names: Sequence[str] = (),
        api_token: str | None = None,
        claim: Claim | None = None,
    ) -> None:
        if len(secret) < 16:
            raise ValueError("the web secret needs at least 16 bytes")
        self._secret = secret
        self._port = port
        self._wildcard = host in ("", "0.0.0.0", "::")
        self._names = frozenset(at for name in names for at in _with_port(name.lower(), port))
        own = (*LOOPBACK_NAMES, f"[{host}]" if ":" in host else host)
        self._hosts = self._names | {at for name in own if name for at in _with_port(name, port)}
        self._api_token = api_token
        self._loopback = _loopback(host)
        # With a public name there is a proxy in front: a loopback caller is not the owner then.
        self._local_owner = self._loopback and not names and not api_token
        self._started = int(clock.now())
        self._used: dict[str, int] = {}
        self._claim = claim
        self.cookie = f"turnkeeper_{port}"

    def check(self, method: str, headers: Mapping[str, str]) -> None:
        """Refuse a foreign Host or Origin."""
        host = headers.get("Host", "").lower()
        if host not in self._hosts and not (self._wildcard and self._address(host)):
            raise RequestRefused(
                403,
                f"This address ({host[:80]}) is not served here. Open the chat by "
                "its own address, or add the name to the web names in the settings.",
            )
        origin = headers.get("Origin")
        site = headers.get("Sec-Fetch-Site", "")
        if origin is not None:
            if not self._own_origin(origin, host):
                raise RequestRefused(
                    403, "This request comes from another site. Open the chat itself."
                )
        elif method not in ("GET", "HEAD") and site != "same-origin" and not _bearer(headers):
            raise RequestRefused(
                403,
                "This request does not say where it comes from. Send an Origin "
                "header, or an API token.",
            )

    def person(self, headers: Mapping[str, str], cookie: str | None) -> str:
        """Who asks; a bearer token, once given, decides alone."""
        bearer = _bearer(headers)
        if bearer:
            if self._api_token and _same(bearer, self._api_token):
                return OWNER
            raise RequestRefused(
                401, "The API token is wrong. Take it from the gateway's settings."
            )
        person = self._read("session", cookie or "")
        if person is None:
            raise RequestRefused(
                401,
                "You are not signed in. Run `turnkeeper link` where the gateway "
                "runs and open the link that it prints.",
            )
        return person

    def welcome(self, headers: Mapping[str, str], remote: str) -> str | None:
        """The owner, when a plain visit to the page comes from this machine and no token is set."""
        site = headers.get("Sec-Fetch-Site", "none")
        forwarded = any(name in headers for name in ("Forwarded", "X-Forwarded-For", "Via"))
        ours = self._local_owner and _loopback(remote) and not forwarded
        return OWNER if ours and site in ("none", "same-origin") else None

    def session(self, person: str) -> str:
        """A session cookie's value for `person`, good for SESSION_SECONDS."""
        return self._sign("session", person, int(clock.now()) + SESSION_SECONDS)

    def issue(self, person: str) -> str:
        """A token for `/signin/<token>`: works once, for LINK_SECONDS, while the gateway runs.

        Any process with the same secret may issue it. ValueError for a name we cannot keep."""
        if not PERSON.fullmatch(person):
            raise ValueError(f"a web person is 1 to 64 letters, digits and @._-, not {person!r}")
        expires = int(clock.now()) + LINK_SECONDS
        return self._sign("link", f"{person}.{clock.secret_id()}", expires)

    async def redeem(self, token: str) -> str:
        """The person whose one-time link this is; refused when used, late or not ours.

        Without a store to claim it in, what was issued before this process began is refused: it
        may have been used already."""
        since = 0 if self._claim else self._started + LINK_SECONDS
        subject = self._read("link", token, since=since)
        person, _, nonce = (subject or "").rpartition(".")
        until = int(clock.now()) + LINK_SECONDS
        claim = self._claim or self._claim_here
        if not person or not await claim(nonce, until):
            raise RequestRefused(
                401,
                "This sign-in link was used already or is too old. Run `turnkeeper "
                "link` for a new one.",
            )
        return person

    async def _claim_here(self, nonce: str, until: int) -> bool:
        now = int(clock.now())
        self._used = {known: end for known, end in self._used.items() if end > now}
        if nonce in self._used:
            return False
        self._used[nonce] = until
        return True

    def _sign(self, use: str, subject: str, expires: int) -> str:
        text = f"{subject}.{expires}"
        return f"{text}.{self._mac(use, text)}"

    def _read(self, use: str, value: str, since: int = 0) -> str | None:
        """The subject of a value that `_sign` made and that is not over."""
        text, _, mac = value.rpartition(".")
        if not _same(mac, self._mac(use, text)):
            return None
        subject, _, expires = text.rpartition(".")
        return subject if max(int(clock.now()) + 1, since) <= int(expires) else None

    def _mac(self, use: str, text: str) -> str:
        data = f"{use}:{text}".encode(errors="replace")
        return hmac.new(self._secret, data, hashlib.sha256).hexdigest()

    def _own_origin(self, origin: str, host: str) -> bool:
        scheme, _, at = origin.lower().partition("://")
        return scheme in ("http", "https") and (at == host or at in self._names)

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


def _bearer(headers: Mapping[str, str]) -> str:
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _same(left: str, right: str) -> bool:
    return hmac.compare_digest(left.encode(errors="replace"), right.encode(errors="replace"))


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
