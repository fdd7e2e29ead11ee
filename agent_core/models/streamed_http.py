"""Streamed HTTP calls to a model's server, by aiohttp itself.

A client above it (httpx2, as the SDKs use it) makes objects of requests, headers and answers that
cost as much as the call. Failures are still httpx2's, so that readers of an answer know one kind.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager

import aiohttp
import httpx2
import msgspec

from agent_core.config.proxies import find_proxy
from agent_core.models.answers.limits import MAX_REFUSAL
from agent_core.models.port import permit_request
from agent_core.models.trust import load_trust

MAX_CONNECTIONS = 1_000
"""As many as the SDKs allow."""
_DECODED = (b"content-encoding", b"content-length", b"transfer-encoding")
"""Headers of a body that are not true of the one that was read."""


@contextmanager
def _map_failures() -> Iterator[None]:
    try:
        yield
    except aiohttp.SocketTimeoutError as error:
        raise httpx2.ReadTimeout(str(error)) from error
    except aiohttp.ServerTimeoutError as error:
        raise httpx2.ConnectTimeout(str(error)) from error
    except aiohttp.ClientPayloadError as error:
        raise httpx2.ReadError(str(error)) from error
    except aiohttp.InvalidURL as error:
        raise httpx2.UnsupportedProtocol(str(error)) from error
    except aiohttp.ClientError as error:
        raise httpx2.ConnectError(str(error)) from error


async def read_json(answer: aiohttp.ClientResponse, most: int) -> object:
    """Return the JSON of a body, in however many pieces it comes. Raises aiohttp.ClientError for
    one of more than `most` bytes, and for one that is no JSON, or is nested too deeply."""
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > most:
            raise aiohttp.ClientPayloadError(f"more than {most:,} bytes")
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise aiohttp.ClientPayloadError(str(error)) from None


class StreamedResponse:
    """A response whose body has not been read yet. `tries`: failed calls before it; `received`:
    bytes of the body read so far."""

    def __init__(self, response: aiohttp.ClientResponse, tries: int) -> None:
        self._response = response
        self.tries = tries
        self.received = 0

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers by case-insensitive name."""
        return self._response.headers

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces as they come. Raises httpx2.HTTPError."""
        content = self._response.content
        with _map_failures():
            while piece := await content.readany():
                self.received += len(piece)
                yield piece

    async def aread(self, most: int) -> bytes:
        """The first `most` bytes of the body, at least. Raises httpx2.HTTPError."""
        body = bytearray()
        with _map_failures():
            while len(body) < most and (piece := await self._response.content.readany()):
                body += piece
        return bytes(body)

    async def aclose(self) -> None:
        """Release the connection, or close it if there is more to come."""
        self._response.release()

    async def keep(self) -> httpx2.Response:
        """The answer with the beginning of its body, as the SDKs' errors want it. Raises
        httpx2.HTTPError."""
        try:
            body = await self.aread(MAX_REFUSAL)
        finally:
            await self.aclose()
        given = self._response.raw_headers  # bytes: they may hold any characters
        headers = [(k, v) for k, v in given if k.lower() not in _DECODED]
        request = httpx2.Request("POST", str(self._response.url))
        return httpx2.Response(self.status, headers=headers, content=body, request=request)


class StreamingClient:
    """Calls to one address. Connections open with the first call, by the proxy that the
    environment names for it, and are trusted as the SDKs' are (SSL_CERT_FILE)."""

    def __init__(self, url: str, timeout: httpx2.Timeout) -> None:
        self._url = url
        self._timeout = aiohttp.ClientTimeout(
            connect=timeout.pool, sock_connect=timeout.connect, sock_read=timeout.read
        )
        self._session: aiohttp.ClientSession | None = None
        self._proxy: str | None = None

    async def post(self, headers: dict[str, str], body: bytes, tries: int = 0) -> StreamedResponse:
        """Return the response once its head has arrived. Raises httpx2.RequestError, and ValueError
        for headers that cannot be sent."""
        session = self._session or self._open()
        await permit_request()
        with _map_failures():
            response = await session.post(
                self._url,
                data=body,
                headers=headers,
                timeout=self._timeout,
                allow_redirects=False,
                proxy=self._proxy,
            )
        return StreamedResponse(response, tries)

    def _open(self) -> aiohttp.ClientSession:
        url = httpx2.URL(self._url)
        trusted = load_trust() if url.scheme == "https" else True
        self._proxy = find_proxy(self._url)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=MAX_CONNECTIONS, ssl=trusted),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self._session

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
