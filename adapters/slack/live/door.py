"""Receives Slack's HTTP requests: Bolt's own checks in Bolt's order, then our handler.

Only slack_bolt's checks are used, not its app: the app answers from handlers, while here nothing is
acknowledged before it is stored; it reads settings from the environment by itself; and its parser
loses a slash command whose text has the word "payload" in it.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias
from urllib.parse import parse_qs

from slack_bolt.middleware.async_middleware import AsyncMiddleware
from slack_bolt.middleware.request_verification.async_request_verification import (
    AsyncRequestVerification,
)
from slack_bolt.middleware.ssl_check.async_ssl_check import AsyncSslCheck
from slack_bolt.middleware.url_verification.async_url_verification import AsyncUrlVerification
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.signature import Clock, SignatureVerifier

from gateway import clock

Json = Mapping[str, object]
Heard: TypeAlias = Callable[[str, Json], Awaitable[int]]
"""Handles a payload, by its kind in Socket Mode; returns the HTTP status."""

DIGITS = 12
"""Maximum digits of a time in seconds; longer ones are no time, and are not parsed."""
LOG = logging.getLogger("adapters.slack.bolt")
LOG.setLevel(logging.WARNING)  # it would log an unsigned request completely


class Door:
    """Admits requests signed with `secret`; `heard` handles those that are ours to answer."""

    def __init__(self, secret: str, heard: Heard) -> None:
        self._heard = heard
        self._checks: tuple[AsyncMiddleware, ...] = (
            AsyncSslCheck(base_logger=LOG),
            _Signed(secret),
            AsyncUrlVerification(base_logger=LOG),
        )

    async def enter(self, body: bytes, headers: Mapping[str, str]) -> BoltResponse:
        """The answer to a request: 401 if it is not Slack's, 400 if it cannot be read."""
        request = _request(body, headers)
        kind, payload = _read(body, request.content_type or "")
        request.body = dict(payload or {})
        return await self._pass_through(
            self._checks, request, partial(self._take_in, kind, payload)
        )

    async def _pass_through(
        self,
        checks: Sequence[AsyncMiddleware],
        request: AsyncBoltRequest,
        last: Callable[[], Awaitable[BoltResponse]],
    ) -> BoltResponse:
        if not checks:
            return await last()
        onward = partial(self._pass_through, checks[1:], request, last)
        passed = BoltResponse(status=200)
        answer = await checks[0].async_process(req=request, resp=passed, next=onward)
        return answer or passed

    async def _take_in(self, kind: str, payload: Json | None) -> BoltResponse:
        return BoltResponse(status=400 if payload is None else await self._heard(kind, payload))


class _Now(Clock):
    """The clock, as slack_sdk's verifier asks for it."""

    def now(self) -> float:
        return clock.now()


class _Signed(AsyncRequestVerification):
    """Bolt's check of the signature, by our clock; a header that is no number or no ASCII counts as
    unsigned."""

    def __init__(self, secret: str) -> None:
        super().__init__(secret, base_logger=LOG)
        self._verifier = SignatureVerifier(secret, _Now())

    async def async_process(
        self,
        *,
        req: AsyncBoltRequest,
        resp: BoltResponse,
        next: Callable[[], Awaitable[BoltResponse]],  # noqa: A002 - Bolt's name
    ) -> BoltResponse:
        stamp, signature = (
            req.headers.get(f"x-slack-{name}", [""])[0]
            for name in ("request-timestamp", "signature")
        )
        if not stamp.isdecimal() or len(stamp) > DIGITS or not signature.isascii():
            return self._build_error_response()
        return await super().async_process(req=req, resp=resp, next=next)


def _request(body: bytes, headers: Mapping[str, str]) -> AsyncBoltRequest:
    """Make Bolt's request; the body is parsed here instead."""
    request = AsyncBoltRequest(body="", headers=dict(headers))
    request.raw_body = body.decode(errors="replace")  # nothing but UTF-8 is ever signed
    return request


def _read(body: bytes, kind: str) -> tuple[str, Json | None]:
    """(kind as Socket Mode calls it, payload) of a request, None if it cannot be read."""
    try:
        if kind == "application/json":
            found = json.loads(body)
            return "events_api", found if isinstance(found, dict) else None
        fields = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        if "payload" in fields:
            found = json.loads(fields["payload"])
            return "interactive", found if isinstance(found, dict) else None
    except (ValueError, RecursionError):
        return "", None
    known = "command" in fields or "ssl_check" in fields
    return "slash_commands", fields if known else None
