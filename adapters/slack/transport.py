"""The transport to Slack's Web API: slack_sdk's client on one aiohttp session.

The SDK's own request follows redirects, holds answers of any size in memory, and raises whatever
their parsing raises.

Owns the session and the meaning of a failed call: RateLimited, Unsent, Ambiguous or Rejected. No
error's text contains a token.
"""

import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from adapters.http_errors import read_answer, translate_http_errors
from adapters.incoming import read_string
from gateway import clock
from gateway.errors import (
    Ambiguous,
    ChatClosed,
    DeliveryError,
    Gone,
    RateLimited,
    Rejected,
    TokenRefused,
    Unsent,
)
from gateway.proxies import find_proxy

Json = Mapping[str, object]

CONNECTIONS = 128
CONNECT_TIMEOUT, READ_TIMEOUT, UPLOAD_TIMEOUT = 4.0, 8.0, 60.0
HEARTBEAT = 10.0
"""Seconds between two pings of the socket."""
BY_CHANNEL, KEPT = ("chat.postMessage", "chat.postEphemeral"), 500
"""Slack counts calls by method in the whole workspace, but new messages by channel."""
LIMITED = ("ratelimited", "rate_limited", "message_limit_exceeded")
BUSY = ("service_unavailable", "request_timeout", "team_added_to_org", "accesslimited")
"""Errors of calls that Slack did not carry out and may carry out later."""
CLOSED = ("not_in_channel", "channel_not_found", "is_archived")
RESTRICTED = "restricted_action"
"""The app may not write there. Rules of a channel, such as a locked thread, have reasons of their
own that begin with RESTRICTED."""
DOUBTFUL = ("internal_error", "fatal_error")
"""Slack: 'it's possible some aspect of the operation succeeded before the error was raised'."""
TOKEN_ERRORS = ("invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired")
OFFICIAL = "slack.com"

log = logging.getLogger("adapters.slack")
SDK_LOG = logging.getLogger("adapters.slack.sdk")
SDK_LOG.setLevel(logging.INFO)  # at DEBUG, or without its own level, it logs each call


class SlackClient(AsyncWebClient):
    """The SDK's client, whose answers are objects: an empty one for all that is none."""

    async def _request(
        self, *, http_verb: str, api_url: str, req_args: dict[str, Any]
    ) -> dict[str, Any]:
        assert self.session is not None
        async with self.session.request(
            http_verb, api_url, **req_args, allow_redirects=False
        ) as answer:
            data = _read_object(await read_answer(answer))
            return {"data": data, "headers": answer.headers, "status_code": answer.status}


class SlackWire:
    """Calls, uploads, downloads and sockets of one app. Sessions open at the first use; after
    `close` a later call opens new ones: the last words of a gateway that drains still go out.
    `on_refusal` is called when Slack refuses the token."""

    def __init__(
        self, token: str, base_url: str, on_refusal: Callable[[], None] = lambda: None
    ) -> None:
        self._token = token
        self._base_url = base_url
        self._host = urlsplit(base_url).hostname or ""
        self._session: aiohttp.ClientSession | None = None
        self._client: SlackClient | None = None
        self._under_way = 0
        self._closing = False
        self._on_refusal = on_refusal
        self.token_refused = False
        self._limited: dict[tuple[str, str], float] = {}
        """The end (`clock.monotonic()`) of Slack's rate limits, by their scope."""

    async def call(self, method: str, arguments: Json, *, form: bool = False) -> Json:
        """`method` of the Web API; its answer. `form`: methods that do not read JSON. RateLimited
        without a call while Slack has not forgotten that another one was too many."""
        counted = method, str(arguments.get("channel", "")) if method in BY_CHANNEL else ""
        left = self._limited.get(counted, 0.0) - clock.monotonic()
        if left > 0:
            raise RateLimited(left)
        try:
            async with self._lend_session():
                with _sort_errors(method):
                    client, given = self._open_client(), dict(arguments)
                    if form:
                        answer = await client.api_call(method, data=given)
                    else:
                        answer = await client.api_call(method, json=given)
        except TokenRefused:
            self.token_refused = True
            self._on_refusal()
            log.error("slack_token_refused", extra={"method": method})
            raise
        except RateLimited as error:
            self._limited[counted] = clock.monotonic() + error.retry_after
            while len(self._limited) > KEPT:
                self._limited.pop(next(iter(self._limited)))
            raise
        self.token_refused = False
        data = answer.data
        if not isinstance(data, dict):
            raise Ambiguous(f"the answer to {method} is not an object")
        return data

    async def open_socket(self, app_token: str) -> str:
        """The URL of a Socket Mode connection, for one use."""
        async with self._lend_session():
            with _sort_errors():
                answer = await self._open_client().apps_connections_open(app_token=app_token)
        url = answer.get("url")
        if not isinstance(url, str):
            raise Ambiguous("apps.connections.open names no URL")
        return url

    @asynccontextmanager
    async def socket(self, url: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """The websocket at `url`; errors in making it as of calls."""
        async with self._lend_session() as session:
            with _sort_errors():
                socket = await session.ws_connect(url, heartbeat=HEARTBEAT, max_msg_size=1 << 24)
            try:
                yield socket
            finally:
                await socket.close()

    async def upload(self, url: str, content: BinaryIO) -> None:
        """Give the bytes to where files.getUploadURLExternal said."""
        timeout = aiohttp.ClientTimeout(total=UPLOAD_TIMEOUT, connect=CONNECT_TIMEOUT)
        async with self._lend_session() as session:
            with _sort_errors():
                async with session.post(
                    url, data=content, timeout=timeout, allow_redirects=False
                ) as answer:
                    status = answer.status
        if status != 200:
            raise Unsent(f"Slack answered {status} to the file")

    async def respond(self, url: str, text: str) -> None:
        """Show `text` to the person whose command came with the address `url` (`response_url`).
        Rejected if that is not Slack's, or has expired (after half an hour)."""
        if not self._is_own(url):
            raise Rejected("the answer's address is not Slack's")
        said = {"response_type": "ephemeral", "text": text}
        async with self._lend_session() as session:
            with _sort_errors():
                async with session.post(url, json=said, allow_redirects=False) as answer:
                    status = answer.status
        if status != 200:
            raise Rejected(f"Slack answered {status} to a private word")

    def _is_own(self, url: str) -> bool:
        host = urlsplit(url).hostname or ""
        return host in (self._host, OFFICIAL) or host.endswith(f".{OFFICIAL}")

    @asynccontextmanager
    async def download(self, url: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open the file at `url` in pieces. The token goes to Slack's own hosts only, and not along
        with a redirect."""
        if not self._is_own(url):
            raise Rejected("the file is not kept by Slack")
        headers = {"Authorization": f"Bearer {self._token}"}
        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT, sock_read=READ_TIMEOUT)
        async with self._lend_session() as session:
            with _sort_errors():
                async with session.get(
                    url, headers=headers, timeout=timeout, allow_redirects=False
                ) as answer:
                    if answer.status in (429, 500, 502, 503, 504):
                        raise Unsent(f"Slack answered {answer.status} instead of the file")
                    if answer.status != 200:
                        raise Rejected(f"Slack answered {answer.status} instead of the file")
                    yield answer.content.iter_chunked(1 << 16)

    async def close(self) -> None:
        """Close the connections as soon as no call needs them."""
        self._closing = True
        await self._close_if_idle()

    def _open_client(self) -> SlackClient:
        if self._client is None:
            self._client = SlackClient(
                token=self._token,
                base_url=self._base_url,
                session=self._session,
                retry_handlers=[],  # the outbox decides about retries
                logger=SDK_LOG,
            )
            self._client.proxy = None  # it takes HTTPS_PROXY whatever NO_PROXY says
        return self._client

    async def _close_if_idle(self) -> None:
        if self._closing and not self._under_way and self._session is not None:
            session, self._session, self._client = self._session, None, None
            await session.close()

    @asynccontextmanager
    async def _lend_session(self) -> AsyncIterator[aiohttp.ClientSession]:
        if self._session is None:
            self._closing = False
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS, limit_per_host=0),
                timeout=aiohttp.ClientTimeout(total=READ_TIMEOUT, connect=CONNECT_TIMEOUT),
                cookie_jar=aiohttp.DummyCookieJar(),
                proxy=find_proxy(self._base_url),
            )
        self._under_way += 1
        try:
            yield self._session
        finally:
            self._under_way -= 1
            await self._close_if_idle()


async def write(chunks: AsyncIterator[bytes], to: BinaryIO, most: int) -> None:
    """Write `chunks` to the file `to`; Rejected beyond `most` bytes."""
    taken = 0
    async for chunk in chunks:
        taken += len(chunk)
        if taken > most:
            raise Rejected(f"the file is larger than {most >> 20} MB")
        to.write(chunk)


@contextmanager
def _sort_errors(method: str = "") -> Iterator[None]:
    """Raise the gateway's errors for those of slack_sdk and aiohttp."""
    try:
        with translate_http_errors(Unsent, Ambiguous):
            yield
    except SlackApiError as error:
        raise _decision(error, method) from None
    except SlackClientError as error:
        raise Ambiguous(f"no answer: {type(error).__name__}") from None


def _read_object(body: bytes) -> dict[str, Any]:
    """Return an answer's JSON object, {} for anything else."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _decision(error: SlackApiError, method: str) -> DeliveryError:
    answer = error.response
    status = getattr(answer, "status_code", 0) or getattr(answer, "status", 0)
    data = getattr(answer, "data", None)
    reason = read_string(data.get("error")) if isinstance(data, dict) else ""
    if status == 429 or reason in LIMITED:
        headers: Mapping[str, str] = getattr(answer, "headers", {})
        return RateLimited(headers.get("Retry-After"))
    if reason in TOKEN_ERRORS:
        return TokenRefused(reason)
    if reason == "message_not_found":
        return Gone(reason)
    ruled = reason.startswith(RESTRICTED) and method.startswith("chat.")  # files have other rules
    if reason in CLOSED or ruled:
        return ChatClosed(reason)
    if reason in BUSY:
        return Unsent(reason)
    if status >= 500 or reason in DOUBTFUL or not reason:
        return Ambiguous(f"Slack answered {reason or status}")
    details = data.get("response_metadata") if isinstance(data, dict) else None
    messages = details.get("messages") if isinstance(details, dict) else None
    more = f": {' '.join(map(read_string, messages))[:300]}" if isinstance(messages, list) else ""
    return Rejected(f"{reason}{more}")
