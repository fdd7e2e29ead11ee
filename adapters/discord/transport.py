"""discord.py's HTTP client with calls whose outcomes can be told apart.

The SDK's own `request` waits out rate limits of any length, also after a successful call, and
repeats failed calls by itself. Here the caller learns of a limit longer than a moment, and of
whether a call may have been carried out.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from io import BytesIO
from typing import BinaryIO

import aiohttp
import msgspec
from discord.gateway import DiscordClientWebSocketResponse
from discord.http import HTTPClient, Route
from msgspec import Struct

from adapters.discord.socket import MAX_FRAME
from adapters.http_errors import read_answer, translate_http_errors
from gateway import clock
from gateway.errors import (
    Ambiguous,
    ChatClosed,
    RateLimited,
    Rejected,
    TokenRefused,
    Unsent,
    read_limit,
)
from gateway.proxies import find_proxy

log = logging.getLogger("adapters.discord")

CONNECT_TIMEOUT, READ_TIMEOUT, UPLOAD_TIMEOUT = 5.0, 10.0, 60.0
MAX_CALL = 30.0
"""Seconds for a call without files, also if its answer goes on piece by piece."""
CONNECTIONS, WS_CLOSE = 200, 5.0
"""Connections at once; seconds for the socket's closing handshake."""
SHORT = 1.0
"""Limits of up to so many seconds are waited for; a longer one is the caller's to know."""
EARLY = 0.003
"""Seconds by which a timer, and a limit that is told in milliseconds, may end too soon."""
MAX_KNOWN = 512
CLOSED = frozenset({10003, 10004, 50001, 50007})
"""Unknown channel or server, missing access, no messages to this person."""
NUMBERS = re.compile(r"\d+(?:\.\d+)?")


class DiscordRefused(Rejected):
    """Discord answered 4xx; `code` is its own number for why."""

    def __init__(self, status: int, code: int, why: str) -> None:
        super().__init__(f"Discord answered {status}: {why}")
        self.status = status
        self.code = code
        self.why = why


class DiscordClosed(DiscordRefused, ChatClosed):
    """The bot may not write there."""


class UploadPart(Struct, frozen=True, kw_only=True):
    """A file to upload."""

    name: str
    mime: str
    content: BinaryIO | bytes


class DiscordWire(HTTPClient):
    """One bot's calls. The session opens at the first one; `base` is the URL of the API. After
    `close` a running call ends well, and a later one opens a session for itself: the last messages
    of a draining gateway still go out. `on_refusal` is called when Discord refuses the token."""

    def __init__(
        self, token: str, base: str, on_refusal: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(asyncio.get_running_loop(), None)
        self.token = token
        self._base = base.rstrip("/")
        self._session: aiohttp.ClientSession | None = None
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._under_way = 0
        self._closing = False
        self._spent: dict[str, float] = {}
        self._silent_until = 0.0
        self._on_refusal = on_refusal
        self.token_refused = False

    async def close(self) -> None:
        """Close the connections as soon as no call needs them."""
        self._closing = True
        await self._close_if_idle()

    def reopen(self) -> None:
        """Keep the connections from now on."""
        self._closing = False

    async def ws_connect(self, url: str, *, compress: int = 0) -> aiohttp.ClientWebSocketResponse:
        """Connect like the SDK, on our session."""
        async with self._lend_session() as session:
            self._socket = await session.ws_connect(
                url,
                max_msg_size=MAX_FRAME,
                timeout=aiohttp.ClientWSTimeout(ws_close=WS_CLOSE),
                autoclose=False,
                headers={"User-Agent": self.user_agent},
                compress=compress,
            )
        return self._socket

    async def drop_socket(self) -> None:
        """Close the last socket, also one that ended before the SDK handed it over."""
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()

    async def request(  # type: ignore[override]  # the SDK's takes its own files and forms
        self,
        route: Route,
        *,
        json: object = None,
        parts: Sequence[UploadPart] = (),
        query: str = "",
    ) -> object:
        """Return the API's answer, None for none. The answer to an interaction is authorised by its
        token, not the bot's. RateLimited, Unsent, Ambiguous or DiscordRefused."""
        key = f"{route.key}:{route.major_parameters}"
        await self._await_limit(key, everywhere=route.webhook_token is None)
        url = self._base + route.url.removeprefix(Route.BASE) + (query and f"?{query}")
        body, headers = _body(json, parts)
        headers |= {"User-Agent": self.user_agent, "Authorization": f"Bot {self.token}"}
        reading = READ_TIMEOUT + (UPLOAD_TIMEOUT if parts else 0.0)
        timeout = aiohttp.ClientTimeout(
            total=None if parts else MAX_CALL, connect=CONNECT_TIMEOUT, sock_read=reading
        )
        async with (
            self._lend_session() as session,
            session.request(
                *(route.method, url),
                data=body,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
            ) as answer,
        ):
            status, payload = answer.status, await read_answer(answer)
        self._learn(key, answer.headers)
        if status == 429:
            raise self._note_limit(key, payload)
        if status >= 500 or 300 <= status < 400 or _is_of_a_proxy(status, payload):
            raise Ambiguous(f"Discord, or something before it, answered {status}")
        if route.webhook_token is None:
            self.token_refused = status == 401
        if self.token_refused and status == 401:
            self._on_refusal()
            log.error("discord_token_refused")
            raise TokenRefused("Discord refuses the bot token (401)")
        if status >= 400:
            raise _refusal(status, payload)
        return _decode(payload) if payload else None

    @asynccontextmanager
    async def download(self, url: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open the body at `url` in pieces. Unsent if it may be retried, otherwise Rejected."""
        timeout = aiohttp.ClientTimeout(connect=CONNECT_TIMEOUT, sock_read=READ_TIMEOUT)
        try:
            async with (
                self._lend_session() as session,
                session.get(url, timeout=timeout, allow_redirects=False) as answer,
            ):
                if answer.status >= 500:
                    raise Unsent(f"the file server answered {answer.status}")
                if answer.status != 200:
                    raise Rejected(f"the file server answered {answer.status}")
                yield answer.content.iter_chunked(1 << 16)
        except Ambiguous as error:
            raise Unsent(str(error)) from None

    @asynccontextmanager
    async def _lend_session(self) -> AsyncIterator[aiohttp.ClientSession]:
        """Lend the session for one call; what aiohttp raises becomes Unsent or Ambiguous."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS),
                ws_response_class=DiscordClientWebSocketResponse,
                cookie_jar=aiohttp.DummyCookieJar(),
                proxy=find_proxy(self._base),
            )
        self._under_way += 1
        try:
            with translate_http_errors(Unsent, Ambiguous):
                yield self._session
        finally:
            self._under_way -= 1
            await self._close_if_idle()

    async def _close_if_idle(self) -> None:
        if self._closing and not self._under_way and self._session is not None:
            session, self._session = self._session, None
            await session.close()

    # ---- limits --------------------------------------------------------------------------

    async def _await_limit(self, key: str, *, everywhere: bool) -> None:
        """Wait for a known short limit; RateLimited for a longer one. The limit on all calls does
        not apply to answers to interactions."""
        silent = self._silent_until if everywhere else 0.0
        left = max(silent, self._spent.get(key, 0.0)) - clock.monotonic()
        if left > SHORT:
            raise RateLimited(left)
        if left > 0:
            await clock.wait(left + EARLY)

    def _learn(self, key: str, headers: Mapping[str, str]) -> None:
        """Note an answer's rate limit: when its bucket is used up, and until when."""
        if headers.get("X-RateLimit-Remaining") != "0":
            self._spent.pop(key, None)
            return
        reset = headers.get("X-RateLimit-Reset-After", "")
        if NUMBERS.fullmatch(reset):
            if len(self._spent) >= MAX_KNOWN:
                now = clock.monotonic()
                self._spent = {name: at for name, at in self._spent.items() if at > now}
            self._spent[key] = clock.monotonic() + read_limit(reset, 0.0)

    def _note_limit(self, key: str, payload: bytes) -> RateLimited:
        answer = _decode(payload, strict=False)
        told = answer.get("retry_after") if isinstance(answer, dict) else None
        seconds = read_limit(told, 5.0)
        if isinstance(answer, dict) and answer.get("global") is True:
            self._silent_until = clock.monotonic() + seconds
        else:
            self._spent[key] = clock.monotonic() + seconds
        return RateLimited(seconds)


def _body(
    json: object, parts: Sequence[UploadPart]
) -> tuple[bytes | aiohttp.FormData | None, dict[str, str]]:
    if json is None:
        return None, {}
    encoded = msgspec.json.encode(json)
    if not parts:
        return encoded, {"Content-Type": "application/json"}
    form = aiohttp.FormData(quote_fields=False)  # Discord takes `files[0]` literally
    form.add_field("payload_json", encoded.decode(), content_type="application/json")
    for n, part in enumerate(parts):
        mime = part.mime or "application/octet-stream"
        content = BytesIO(part.content) if isinstance(part.content, bytes) else part.content
        form.add_field(f"files[{n}]", content, filename=part.name, content_type=mime)
    return form, {}


def _decode(payload: bytes, *, strict: bool = True) -> object:
    try:
        return msgspec.json.decode(payload)
    except (msgspec.DecodeError, RecursionError):
        if strict:
            raise Ambiguous("the answer is not JSON") from None
        return None


def _is_of_a_proxy(status: int, payload: bytes) -> bool:
    """True if something before Discord refuses the call: that says nothing of token or message,
    unless it is too large."""
    known = status < 400 or status == 413
    return not known and not isinstance(_decode(payload, strict=False), dict)


def _refusal(status: int, payload: bytes) -> DiscordRefused:
    answer = _decode(payload, strict=False)
    if not isinstance(answer, dict):
        return DiscordRefused(status, 0, "")
    code = answer.get("code")
    fields = msgspec.json.encode(answer.get("errors", {})).decode()[:300]
    why = f"{str(answer.get('message', ''))[:200]} {fields if fields != '{}' else ''}".strip()
    kind = DiscordClosed if code in CLOSED else DiscordRefused
    return kind(status, code if isinstance(code, int) else 0, why)
