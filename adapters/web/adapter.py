"""The web platform: the page, sign-in, and the API. Views are read from the store, never sent."""

from collections.abc import Sequence
from pathlib import Path

from aiohttp import web

from adapters.web.api import STATIC, Api, guarded
from adapters.web.gate import SESSION_SECONDS, Gate, Refused
from adapters.web.stream import Streams, Told
from adapters.web.uploads import Uploads
from gateway import clock
from gateway.errors import Rejected
from gateway.messages import Attachment, Conversation
from gateway.ports import Accept, Desk
from gateway.views import Abilities, View

CONTACT = 30.0

NOTE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">{head}<title>Turnkeeper</title>
<link rel="stylesheet" href="/page.css"></head><body class="note"><main><h1>{title}</h1>
<p>{text}</p><p><a href="/">Open the chat</a></p></main></body></html>"""
SIGN_IN = "Run <code>turnkeeper link</code> where the gateway runs, and open the link it prints."


class WebAdapter:
    """The web chat of one gateway; `uploads` is the folder for files that people attach."""

    platform = "web"
    abilities = Abilities(reads_views=True, own_messages=False, drafts=False)

    def __init__(self, desk: Desk, gate: Gate, uploads: Path) -> None:
        self.last_contact = 0.0
        self._gate = gate
        self._uploads = Uploads(uploads)
        self._streams = Streams()
        self._api = Api(desk, gate, self._uploads, self._streams)

    @property
    def routes(self) -> Sequence[web.AbstractRouteDef]:
        """The page and the API."""
        return [
            web.get("/", guarded(self._gate, self._page)),
            web.get("/page.js", guarded(self._gate, self._asset)),
            web.get("/page.css", guarded(self._gate, self._asset)),
            # A link is used up by a visit: link checkers that send HEAD must not do so.
            web.get("/signin/{token}", guarded(self._gate, self._sign_in), allow_head=False),
            *self._api.routes,
        ]

    async def run(self, accept: Accept) -> None:
        """Nothing to connect to: the HTTP server calls. Ends the open streams when cancelled."""
        try:
            while True:
                self.last_contact = clock.monotonic()
                await clock.wait(CONTACT)
        finally:
            self._streams.close()

    def render(self, view: View, conversation: Conversation) -> tuple[bytes, ...]:
        """Nothing is sent."""
        return ()

    async def send(self, conversation: Conversation, payload: bytes) -> str:
        """Never called: `abilities.reads_views`."""
        raise Rejected("the web chat reads views itself")

    async def edit(self, conversation: Conversation, native: str, payload: bytes) -> None:
        """Never called: `abilities.reads_views`."""
        raise Rejected("the web chat reads views itself")

    async def draft(self, conversation: Conversation, key: int, text: str) -> None:
        """Never called: growing text comes by `Desk.watch`."""

    async def tell(self, conversation: Conversation, press: str, text: str) -> None:
        """Show `text` on the person's open pages."""
        self._streams.put(conversation.id, Told(press=press, text=text))

    async def receipt(self, conversation: Conversation, message: str) -> None:
        """The page shows waiting messages; tell it that they changed."""
        self._streams.put(conversation.id, "look")

    async def fetch(self, attachment: Attachment, to: Path) -> None:
        """Copy an uploaded file; Rejected if it is gone."""
        try:
            await self._uploads.copy(attachment.ref, to)
        except OSError as error:
            raise Rejected(f"the uploaded file {attachment.name} cannot be read") from error

    async def _page(self, request: web.Request) -> web.StreamResponse:
        page = web.FileResponse(STATIC / "index.html")
        try:
            self._gate.person(request.headers, request.cookies.get(self._gate.cookie))
        except Refused:
            person = self._gate.welcome(request.headers, request.remote or "")
            if person is None:
                return _note("Please sign in", SIGN_IN, 401)
            self._remember(request, page, person)
        return page

    async def _asset(self, request: web.Request) -> web.StreamResponse:
        name = request.path.lstrip("/")
        return web.FileResponse(STATIC / name, headers={"Cache-Control": "no-cache"})

    async def _sign_in(self, request: web.Request) -> web.StreamResponse:
        try:
            person = self._gate.redeem(request.match_info["token"])
        except Refused:
            return _note("This link is over", f"It was used, or is too old. {SIGN_IN}", 401)
        # Not a redirect: a strict cookie is not sent along when the link was on another site.
        note = _note("Signed in", "One moment.", 200, '<meta http-equiv="refresh" content="0; url=/">')  # fmt: skip
        self._remember(request, note, person)
        return note

    def _remember(self, request: web.Request, response: web.StreamResponse, person: str) -> None:
        response.set_cookie(
            self._gate.cookie,
            self._gate.session(person),
            max_age=SESSION_SECONDS,
            path="/",
            httponly=True,
            samesite="Strict",
            secure=request.secure or request.headers.get("X-Forwarded-Proto") == "https",
        )


def _note(title: str, text: str, status: int, head: str = "") -> web.Response:
    page = NOTE.format(title=title, text=text, head=head)
    return web.Response(text=page, status=status, content_type="text/html")
