"""The web platform: the page, sign-in, and the API. Views are read from the store, never sent."""

import contextlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from aiohttp import web

from adapters.web import words
from adapters.web.api import STATIC, Api, guard, identify
from adapters.web.gate import SESSION_SECONDS, RequestGate, RequestRefused, is_from_another_site
from adapters.web.outputs import Outputs
from adapters.web.sessions import name_device
from adapters.web.sign_out import session_routes
from adapters.web.stream import EventStreams, PrivateWord
from adapters.web.uploads import Uploads
from gateway import clock
from gateway.command_texts import write_commands
from gateway.errors import Rejected, StoreFailed
from gateway.messages import Attachment, Conversation
from gateway.ports import Accept, WebBackend
from gateway.views import Abilities, View

log = logging.getLogger("turnkeeper.web")

CONTACT = 30.0
"""Seconds between two signs that the adapter runs."""

SWEEP = 3600.0
"""Seconds between two looks for uploads that are kept no longer."""
ASSETS = tuple(
    path.relative_to(STATIC).as_posix()
    for pattern in ("*.js", "*.css", "highlight/*.js")
    for path in sorted(STATIC.glob(pattern))
)


class WebAdapter:
    """The web chat of one gateway; `uploads` is the folder for files that people attach,
    `outputs` the one that `MediaFile.ref` is a path in."""

    platform = "web"
    abilities = Abilities(reads_views=True, own_messages=False, drafts=False)

    def __init__(
        self, backend: WebBackend, gate: RequestGate, uploads: Path, outputs: Path
    ) -> None:
        self.last_contact = 0.0
        self._gate = gate
        self._uploads = Uploads(uploads)
        self._streams = EventStreams()
        self._api = Api(backend, gate, self._streams, self._uploads, Outputs(outputs))

    @property
    def routes(self) -> Sequence[web.AbstractRouteDef]:
        """The page and the API."""
        return [
            web.get("/", guard(self._gate, self._page)),
            *(web.get(f"/{name}", guard(self._gate, self._asset)) for name in ASSETS),
            # A link is consumed by a visit: link checkers that send HEAD must not consume it.
            web.get("/signin/{token}", guard(self._gate, self._sign_in), allow_head=False),
            web.post("/signin/{token}", guard(self._gate, self._sign_in)),
            # Chat clients prefetch links: these sign in with a button.
            web.get("/enter/{token}", guard(self._gate, self._ask_to_sign_in)),
            web.post("/enter/{token}", guard(self._gate, self._sign_in_from_chat)),
            *self._api.routes,
            *session_routes(self._gate, self._streams),
        ]

    async def run(self, accept: Accept) -> None:
        """Delete old uploads until cancelled, then end the open streams. There is no connection to
        make: the HTTP server calls."""
        swept = -SWEEP
        try:
            while True:
                self.last_contact = clock.monotonic()
                if self.last_contact - swept >= SWEEP:
                    swept = self.last_contact
                    with contextlib.suppress(OSError):
                        await self._uploads.sweep()
                await clock.wait(CONTACT)
        finally:
            self._streams.close()

    def render(self, view: View, conversation: Conversation) -> tuple[bytes, ...]:
        """Return (): nothing is sent."""
        return ()

    async def send(self, conversation: Conversation, payload: bytes, answers: str = "") -> str:
        """Never called: `abilities.reads_views`."""
        raise Rejected("the web chat reads views itself")

    async def edit(self, conversation: Conversation, native: str, payload: bytes) -> None:
        """Never called: `abilities.reads_views`."""
        raise Rejected("the web chat reads views itself")

    async def draft(self, conversation: Conversation, key: int, text: str) -> None:
        """Do nothing, never called: growing text comes by `WebBackend.watch`."""

    async def tell(self, conversation: Conversation, press: str, text: str) -> None:
        """Show `text` on the person's open pages. Without a text there is nothing to tell: the
        press's effect is shown by its view."""
        if not text:
            return
        self._streams.put(conversation.id, PrivateWord(press=press, text=write_commands(text)))

    async def receipt(self, conversation: Conversation, message: str) -> None:
        """Tell the page that its waiting messages changed."""
        self._streams.put(conversation.id, "look")

    async def fetch(self, attachment: Attachment, to: BinaryIO) -> None:
        """Copy an uploaded file; Rejected if it is gone."""
        try:
            await self._uploads.copy(attachment.ref, to)
        except OSError as error:
            raise Rejected(f"the uploaded file {attachment.name} cannot be read") from error

    async def _page(self, request: web.Request) -> web.StreamResponse:
        language = words.choose_language(request.headers.get("Accept-Language", ""))
        page = web.Response(text=words.page(language), content_type="text/html")
        try:
            with contextlib.suppress(StoreFailed):  # the page itself shows it
                await identify(self._gate, request)
        except RequestRefused as refused:
            page = _note_wait(refused, language) or _note("sign_in", language, 200)
        page.headers["Vary"] = "Accept-Language"
        return page

    async def _asset(self, request: web.Request) -> web.StreamResponse:
        name = request.path.lstrip("/")
        return web.FileResponse(STATIC / name, headers={"Cache-Control": "no-cache"})

    async def _sign_in(self, request: web.Request) -> web.StreamResponse:
        if "prefetch" in request.headers.get("Sec-Purpose", request.headers.get("Purpose", "")):
            # a prefetching browser asks again when the link is followed
            return web.Response(status=503)
        if request.method == "GET" and is_from_another_site(request.headers):
            # its page could sign somebody in as another person, who then reads their messages
            return await self._ask_to_sign_in(request)
        language = words.choose_language(request.headers.get("Accept-Language", ""))
        try:
            person = await self._gate.redeem(request.match_info["token"], request.remote or "")
        except RequestRefused as refused:
            return _note_wait(refused, language) or _note("link_over", language, refused.status)
        return await self._begin_session(request, person, language)

    async def _ask_to_sign_in(self, request: web.Request) -> web.StreamResponse:
        language = words.choose_language(request.headers.get("Accept-Language", ""))
        page = web.Response(text=words.ask_to_sign_in(language), content_type="text/html")
        page.headers["Referrer-Policy"] = "same-origin"  # else the press has no Origin to check
        return page

    async def _sign_in_from_chat(self, request: web.Request) -> web.StreamResponse:
        language = words.choose_language(request.headers.get("Accept-Language", ""))
        token = request.match_info["token"]
        try:
            person = await self._gate.redeem_from_chat(token, request.remote or "")
        except RequestRefused as refused:
            return _note_wait(refused, language) or _note("enter_over", language, refused.status)
        return await self._begin_session(request, person, language)

    async def _begin_session(
        self, request: web.Request, person: str, language: str
    ) -> web.StreamResponse:
        # Not a redirect: a strict cookie is not sent if the link was on another site.
        note = _note("signed_in", language, 200, '<meta http-equiv="refresh" content="0; url=/">')
        note.set_cookie(
            self._gate.cookie,
            await self._gate.begin_session(person, name_device(request.headers)),
            max_age=SESSION_SECONDS,
            path="/",
            httponly=True,
            samesite="Strict",
            secure=request.secure or request.headers.get("X-Forwarded-Proto") == "https",
        )
        log.info("signed_in", extra={"person": person})
        return note


def _note(name: str, language: str, status: int, head: str = "") -> web.Response:
    text = words.note(name, language, head)
    return web.Response(text=text, status=status, content_type="text/html")


def _note_wait(refused: RequestRefused, language: str) -> web.Response | None:
    """Return the answer to a client that has to wait; None for another refusal."""
    if not refused.wait:
        return None
    note = _note("slow_down", language, refused.status)
    note.headers["Retry-After"] = str(refused.wait)
    return note
