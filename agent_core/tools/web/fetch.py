"""The guarded fetch: reads public URLs, within limits of size, time and hops.

The guard checks the address of each connection after the name was resolved, so neither a name that
leads inside, nor an answer that changes, nor a redirect gets past it. The environment's proxies are
not used: one of them would see the address in the guard's place.
"""

import socket
from collections.abc import Callable
from typing import TypeAlias
from urllib.parse import urljoin

import aiohttp
from aiohttp.abc import AbstractResolver

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.tools.web.addresses import Target, Unreachable, is_public, read_url
from agent_core.tools.web.port import Fetched

MAX_BYTES = 10_000_000
SECONDS = 20.0
HOPS = 5
PIECE = 1 << 16
AGENT = "Mozilla/5.0 (compatible; Turnkeeper/1.0)"
TYPES = (
    "text/", "application/xhtml+xml", "application/json", "application/ld+json", "application/xml",
    "application/rss+xml", "application/atom+xml",
)  # fmt: skip

AddressInfo: TypeAlias = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple]  # type: ignore[type-arg]  # noqa: E501  # as aiohttp has it
Sockets: TypeAlias = Callable[[AddressInfo], socket.socket]


class _Refused(OSError):
    """The guard let no connection be made."""


class Fetcher:
    """Reads public URLs. `allowed`: places (`host:port`) that the operator opened and that may be
    anywhere. `resolver`: the machine's by default. `types`: prefixes of accepted MIME types."""

    def __init__(
        self,
        allowed: frozenset[str] = frozenset(),
        resolver: AbstractResolver | None = None,
        types: tuple[str, ...] = TYPES,
    ) -> None:
        self._allowed, self._types = allowed, types
        self._resolver = resolver

    async def get(self, url: str, stay: bool = False) -> Fetched:
        """Return the content of `url`; ToolFailed with the reason. `stay`: a redirect to another
        host is reported, not followed."""
        try:
            async with ambient.limit(SECONDS):
                return await self._follow(url, stay)
        except TimeoutError:
            raise ToolFailed(f"{url} gave no answer within {SECONDS:g} s.") from None
        except Unreachable as error:
            raise ToolFailed(f"{url} is not read. {error}") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ToolFailed(_explain(url, error)) from None

    async def _follow(self, url: str, stay: bool) -> Fetched:
        first = target = read_url(url)
        for _ in range(HOPS + 1):
            found = await self._request_once(target)
            if not found.moved:
                return found
            target = read_url(urljoin(target.url, found.moved))
            if stay and _site(target) != _site(first):
                return Fetched(url=first.url, mime="", charset="", body=b"", moved=target.url)
        raise ToolFailed(f"{url} was redirected more than {HOPS} times.")

    async def _request_once(self, target: Target) -> Fetched:
        """Make one request, following no redirect."""
        opener: Sockets = _open if target.place in self._allowed else _open_guarded_socket
        connector = aiohttp.TCPConnector(
            socket_factory=opener, resolver=self._resolver, force_close=True, use_dns_cache=False
        )
        headers = {"User-Agent": AGENT, "Accept": "text/html,text/*;q=0.9,*/*;q=0.5"}
        async with (
            aiohttp.ClientSession(
                connector=connector,
                headers=headers,
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            ) as session,
            session.get(target.url, allow_redirects=False) as answer,
        ):
            moved = answer.headers.get("Location", "")
            if answer.status in (301, 302, 303, 307, 308) and moved:
                return Fetched(url=target.url, mime="", charset="", body=b"", moved=moved)
            if answer.status != 200:
                raise ToolFailed(f"{target.url} answered {answer.status} {answer.reason or ''}.")
            mime = answer.content_type.lower()
            if not mime.startswith(self._types):
                what = "text and web pages" if self._types is TYPES else "pictures"
                raise ToolFailed(f"{target.url} is {mime}: only {what} can be read.")
            body = await _body(answer)
        return Fetched(url=target.url, mime=mime, charset=answer.charset or "", body=body)


async def _body(answer: aiohttp.ClientResponse) -> bytes:
    """Return the decompressed body; reading stops early if it is too large."""
    pieces, size = [], 0
    async for piece in answer.content.iter_chunked(PIECE):
        size += len(piece)
        if size > MAX_BYTES:
            raise ToolFailed(f"{answer.url} is larger than {MAX_BYTES // 1_000_000} MB.")
        pieces.append(piece)
    return b"".join(pieces)


def _open(info: AddressInfo) -> socket.socket:
    family, kind, protocol, _, _ = info
    return socket.socket(family, kind, protocol)


def _open_guarded_socket(info: AddressInfo) -> socket.socket:
    """A socket for a connection to this very address, if it is a public one."""
    address = str(info[4][0])
    if not is_public(address):
        raise _Refused(f"{address} is no public address")
    return _open(info)


def _site(target: Target) -> str:
    return target.host.removeprefix("www.")


def _explain(url: str, error: Exception) -> str:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, _Refused) or "is no public address" in str(cause):
        return f"{url} is not read: it leads to an address that is not public."
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"{url} cannot be reached: there is no such host."
    return f"{url} cannot be read: {str(error) or type(error).__name__}."
