"""A person's sessions in the HTTP API: to see them, to end one, to sign out."""

import logging

from aiohttp import web
from msgspec import Struct

from adapters.web.api import Handler, guard, identify
from adapters.web.gate import RequestGate, RequestRefused, Visitor
from adapters.web.stream import EventStreams
from adapters.web.wire import answer

log = logging.getLogger("turnkeeper.web")


class ShownSession(Struct, frozen=True, kw_only=True):
    """One session; `current` is the visitor's own. Times are seconds since 1970."""

    id: str
    device: str
    began: int
    expires: int
    current: bool


class SessionList(Struct, frozen=True, kw_only=True):
    """The open sessions of who asks, the newest first."""

    sessions: tuple[ShownSession, ...]


class EndedAnswer(Struct, frozen=True, kw_only=True):
    """The session is ended."""

    ended: str


def session_routes(gate: RequestGate, streams: EventStreams) -> list[web.AbstractRouteDef]:
    """The routes. They are for whoever is signed in, with a role or without."""

    async def list_sessions(request: web.Request) -> web.StreamResponse:
        visitor = await identify(gate, request)
        found = await gate.book.find(visitor.person)
        shown = (
            ShownSession(
                id=one.id,
                device=one.device,
                began=one.began,
                expires=one.expires,
                current=one.id == visitor.session,
            )
            for one in reversed(found)
        )
        return answer(SessionList(sessions=tuple(shown)))

    async def end_session(request: web.Request) -> web.StreamResponse:
        visitor = await identify(gate, request)
        return await _end(visitor, request.match_info["session"])

    async def sign_out(request: web.Request) -> web.StreamResponse:
        visitor = await identify(gate, request)
        if not visitor.session:
            raise RequestRefused(409, "A token has no session. Take it out of the settings.")
        return await _end(visitor, visitor.session)

    async def _end(visitor: Visitor, session: str) -> web.StreamResponse:
        if not await gate.book.end(visitor.person, session):
            raise RequestRefused(404, "There is no such session. GET /api/sessions lists them.")
        streams.close_session(session)
        log.info("signed_out", extra={"person": visitor.person})
        response = answer(EndedAnswer(ended=session))
        if session == visitor.session:
            response.del_cookie(gate.cookie, path="/", httponly=True, samesite="Strict")
        return response

    handlers: tuple[tuple[str, str, Handler], ...] = (
        ("GET", "/api/sessions", list_sessions),
        ("DELETE", "/api/sessions/{session}", end_session),
        ("POST", "/api/signout", sign_out),
    )
    return [web.route(way, path, guard(gate, call)) for way, path, call in handlers]
