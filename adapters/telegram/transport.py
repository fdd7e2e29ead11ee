"""The transport to the Bot API: python-telegram-bot's request port on one aiohttp session.

PTB's own httpx transport is the burst limit of a bot (docs: five times slower). Owns the session,
and the meaning of a failed call: NotSent, Lost or Flood. No error's text contains the URL, as that
contains the token.
"""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO

import aiohttp
import msgspec
from telegram import Bot
from telegram._utils.types import ODVInput
from telegram.error import BadRequest, NetworkError, TelegramError
from telegram.request import BaseRequest, RequestData

from adapters.http_errors import read_answer, translate_http_errors
from gateway.errors import read_limit
from gateway.proxies import find_proxy

CONNECTIONS = 256
CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 12.0
UPLOAD_TIMEOUT = 60.0
PASSED_ON = {400, 401, 403, 404, 409}
"""4xx codes that PTB has a class of its own for; 429 is ours, any other becomes 400."""
TOO_LARGE = 413
"""A server before Telegram may say this too; it will say so each time."""

NONE = BaseRequest.DEFAULT_NONE

# Both log URLs that contain the token: PTB's Bot at DEBUG, httpx at INFO.
logging.getLogger("telegram").setLevel(logging.INFO)
logging.getLogger("httpx").setLevel(logging.WARNING)


class NotSent(NetworkError):
    """No connection was made: the server saw nothing."""


class Lost(NetworkError):
    """The request may have arrived; no usable answer came back."""


class Flood(TelegramError):
    """429. PTB's own RetryAfter warns on creation and is not made without `retry_after`."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"flood control, retry in {retry_after:g} s")
        self.retry_after = retry_after


def decode(payload: bytes) -> object:
    """Decode JSON of any server; ValueError if it is none. msgspec is stricter about lone
    surrogates than Telegram's clients are, hence the second try."""
    try:
        try:
            return msgspec.json.decode(payload)
        except msgspec.DecodeError:
            return json.loads(payload)
    except RecursionError:
        raise ValueError("nested too deeply") from None


class AiohttpRequest(BaseRequest):
    """JSON bodies, multipart for files; the session opens at the first request. After `shutdown` a
    running call ends well, and a later one opens a session for itself: the last messages of a
    draining gateway still go out."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._session: aiohttp.ClientSession | None = None
        self._under_way = 0
        self._closing = False

    @property
    def read_timeout(self) -> float:
        return READ_TIMEOUT

    async def initialize(self) -> None:
        self._closing = False

    async def shutdown(self) -> None:
        """Close the connections as soon as no call needs them."""
        self._closing = True
        await self._close_if_idle()

    async def _close_if_idle(self) -> None:
        if self._closing and not self._under_way and self._session is not None:
            session, self._session = self._session, None
            await session.close()

    @asynccontextmanager
    async def _lend_session(self) -> AsyncIterator[aiohttp.ClientSession]:
        """Lend the session for one call; what aiohttp raises becomes NotSent or Lost."""
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=CONNECTIONS, limit_per_host=0)
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers={"User-Agent": self.USER_AGENT},
                cookie_jar=aiohttp.DummyCookieJar(),
                proxy=find_proxy(self._base_url),
            )
        self._under_way += 1
        try:
            with translate_http_errors(NotSent, Lost):
                yield self._session
        finally:
            self._under_way -= 1
            await self._close_if_idle()

    async def do_request(  # noqa: PLR0913 - PTB's signature
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: ODVInput[float] = NONE,
        write_timeout: ODVInput[float] = NONE,
        connect_timeout: ODVInput[float] = NONE,
        pool_timeout: ODVInput[float] = NONE,
    ) -> tuple[int, bytes]:
        """Make one call; NotSent, Lost or Flood without an answer that PTB can read."""
        reading = read_timeout if isinstance(read_timeout, int | float) else READ_TIMEOUT
        body, headers = _body(request_data)
        if isinstance(body, aiohttp.FormData):
            reading += UPLOAD_TIMEOUT
        timeout = aiohttp.ClientTimeout(
            total=CONNECT_TIMEOUT + reading, connect=CONNECT_TIMEOUT, sock_read=reading
        )
        async with (
            self._lend_session() as session,
            session.request(
                method, url, data=body, headers=headers, timeout=timeout, allow_redirects=False
            ) as answer,
        ):
            code, payload = answer.status, await read_answer(answer)
        if code == 429:
            raise Flood(_retry_after(payload))
        if code >= 500 or 300 <= code < 400:
            raise Lost(f"Telegram answered {code}")
        if code >= 400 and code != TOO_LARGE and not _is_refusal(payload):
            raise Lost(f"something before Telegram answered {code}")
        return (400 if code >= 400 and code not in PASSED_ON else code), payload

    @asynccontextmanager
    async def download(self, url: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """The body at `url` in pieces, of that server alone; errors as `do_request`, in the reading
        too."""
        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT, sock_read=READ_TIMEOUT)
        async with (
            self._lend_session() as session,
            session.get(url, timeout=timeout, allow_redirects=False) as answer,
        ):
            if 400 <= answer.status < 500:
                raise BadRequest(f"the file server answered {answer.status}")
            if answer.status != 200:
                raise Lost(f"the file server answered {answer.status}")
            yield answer.content.iter_chunked(1 << 16)

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, object]:
        """Decode like PTB, which logs the payload and fails on answers that are no object."""
        try:
            answer = decode(payload)
        except ValueError:
            raise Lost("the answer is not JSON") from None
        if not isinstance(answer, dict):
            raise Lost("the answer is not an object")
        answer.setdefault("result", None)
        if "description" in answer:
            answer["description"] = str(answer["description"])
        answer["parameters"] = _read_move(answer.get("parameters"))
        return answer


class RawBot(Bot):
    """PTB's Bot, called with ready JSON and answered with plain JSON.

    Its typed methods build objects from every answer: 120 µs a `send_message` against 10 µs,
    and 100 µs an update against 1 µs (`do_api_request` warns on methods that PTB knows)."""

    async def call(
        self, method: str, data: dict[str, object], read_timeout: float | None = None
    ) -> object:
        """Call `method` of the Bot API with `data`; return the answer's `result`."""
        try:
            # Not `_post`, which searches for PTB's own objects and fails on plain ones.
            result: object = await self._do_post(method, data, read_timeout=read_timeout or NONE)
        except TelegramError as error:
            error.message = error.message.replace(self.token, "…")
            raise error from None
        return result

    def __repr__(self) -> str:
        return "RawBot()"  # PTB's shows the token


def _body(data: RequestData | None) -> tuple[bytes | aiohttp.FormData | None, dict[str, str]]:
    if data is None:
        return None, {}
    if not data.contains_files:
        return msgspec.json.encode(data.parameters), {"Content-Type": "application/json"}
    form = aiohttp.FormData(quote_fields=False)  # Telegram takes names literally
    for name, value in data.json_parameters.items():
        form.add_field(name, value)
    for name, (filename, content, mime) in data.multipart_data.items():
        file = BytesIO(content) if isinstance(content, bytes) else content  # sent in pieces
        form.add_field(name, file, filename=filename, content_type=mime)
    return form, {}


def _is_refusal(payload: bytes) -> bool:
    """True if Telegram itself refuses the call: a proxy's 404 says nothing of the token."""
    return _read_object(payload).get("ok") is False


def _retry_after(payload: bytes) -> float:
    """Seconds a 429 asks for, 1 if it does not say."""
    told = _read_object(payload).get("parameters")
    return read_limit(told.get("retry_after") if isinstance(told, dict) else None)


def _read_move(parameters: object) -> dict[str, object]:
    """Return the parameter of a refusal that PTB reads, without values on which it fails: the chat
    into which a group was moved. A time to wait comes with 429 alone, see `_retry_after`."""
    moved = parameters.get("migrate_to_chat_id") if isinstance(parameters, dict) else None
    return {"migrate_to_chat_id": moved} if type(moved) is int and moved else {}


def _read_object(payload: bytes) -> dict[str, object]:
    """Return the answer of an API, empty if it is another's."""
    try:
        answer = decode(payload)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}
