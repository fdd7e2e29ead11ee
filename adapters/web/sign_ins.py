"""Sign-ins at tool servers: the page behind a chat's link, and the OAuth callback.

The page tells who signs in, and where; chats fetch links, so that only its button goes on. The
callback is valid only in the browser that pressed it, by a cookie of its own.
"""

import html

from aiohttp import web

from adapters.web import words
from adapters.web.api import guard
from adapters.web.gate import RequestGate
from gateway.ports import SignInPages, SignInStep

PATH = "/servers"
SECONDS = 600
"""Seconds for which the cookie is valid."""
MAX_VALUE = 4_000
"""Maximum characters of a callback's values."""


def sign_in_routes(pages: SignInPages, gate: RequestGate) -> list[web.AbstractRouteDef]:
    """The routes."""
    cookie = f"{gate.cookie}_servers"

    async def show(request: web.Request) -> web.StreamResponse:
        return _answer(await pages.look(request.match_info["token"]), request)

    async def begin(request: web.Request) -> web.StreamResponse:
        step = await pages.begin(request.match_info["token"])
        response = _answer(step, request)
        if step.url:
            response.set_cookie(
                cookie,
                step.browser,
                max_age=SECONDS,
                path=PATH,
                httponly=True,
                samesite="Lax",  # the return comes from another site
                secure=request.secure or request.headers.get("X-Forwarded-Proto") == "https",
            )
        return response

    async def finish(request: web.Request) -> web.StreamResponse:
        state, code, issuer = (
            request.query.get(name, "")[:MAX_VALUE] for name in ("state", "code", "iss")
        )
        browser = request.cookies.get(cookie, "")[:MAX_VALUE]
        response = _answer(await pages.finish(state, code, issuer, browser), request)
        response.del_cookie(cookie, path=PATH)
        return response

    return [
        web.get(f"{PATH}/signin/{{token}}", guard(gate, show)),
        web.post(f"{PATH}/signin/{{token}}", guard(gate, begin)),
        # a link with a code is consumed by a visit
        web.get(f"{PATH}/callback", guard(gate, finish), allow_head=False),
    ]


def _answer(step: SignInStep, request: web.Request) -> web.Response:
    language = words.choose_language(request.headers.get("Accept-Language", ""))
    fields = {"server": step.server, "person": step.person, "platform": step.platform}
    safe = {name: html.escape(value) for name, value in fields.items()}
    head, form = "", ""
    if step.outcome == "asked":
        form = words.make_button("server_button", language)
    elif step.url:
        # not a redirect: browsers apply the page's own policy to those of a form
        head = f'<meta http-equiv="refresh" content="0; url={html.escape(step.url)}">'
    text = words.note(f"server_{step.outcome}", language, head, form, **safe)
    status = {"over": 410, "failed": 502}.get(step.outcome, 200)
    response = web.Response(text=text, status=status, content_type="text/html")
    if step.outcome == "asked":
        response.headers["Referrer-Policy"] = "same-origin"  # else the press has no Origin to check
    return response
