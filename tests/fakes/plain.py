"""The smallest adapter that keeps the contract, for a platform that knows texts and buttons only;
and that platform. Where to look first when a new one is written."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, BinaryIO

import msgspec
from aiohttp import ClientConnectorError, ClientError, ClientSession, web
from msgspec import Struct

from gateway import clock
from gateway.errors import (
    Ambiguous,
    DeliveryError,
    Gone,
    RateLimited,
    Rejected,
    StoreFailed,
    TokenRefused,
    Unsent,
)
from gateway.messages import Attachment, ButtonPressed, Conversation, Inbound, MessageReceived
from gateway.messages import Sender as Person
from gateway.ports import Accept
from gateway.views import Abilities, PlanView, Said, View, show_doubt

if TYPE_CHECKING:
    from aiohttp.web import AbstractRouteDef

PAUSE = 0.01


class Happened(Struct, frozen=True):
    """What somebody did: said `text`, or pressed the button with the token `text`."""

    id: str
    person: str
    text: str
    message: str = ""


class PlainAdapter:
    """Polls for what happened; every call is an HTTP request."""

    platform = "plain"
    abilities = Abilities()
    routes: "Sequence[AbstractRouteDef]" = ()

    def __init__(self, url: str) -> None:
        self.last_contact = 0.0
        self._url = url

    async def run(self, accept: Accept) -> None:
        """What is not kept is asked for again."""
        seen = 0
        while True:
            try:
                answer = await self._call("GET", f"/happened/{seen}")
                self.last_contact = clock.monotonic()
                came = msgspec.json.decode(answer, type=list[Happened])
                await accept([_inbound(one) for one in came])
                seen += len(came)
            except (DeliveryError, StoreFailed):
                await clock.wait(PAUSE)

    def render(self, view: View, conversation: Conversation) -> tuple[bytes, ...]:
        """A view's words, whichever it is, and its buttons."""
        if isinstance(view, Said):
            return ()
        view = show_doubt(view)
        words = [getattr(view, name, "") for name in ("title", "text", "words", "caption")]
        if isinstance(view, PlanView):
            words += [step.text for step in view.steps]
        buttons = {one.label: one.token for one in getattr(view, "buttons", ())}
        text = "\n".join(filter(None, words)) or type(view).__name__
        return (msgspec.json.encode({"text": text, "buttons": buttons}),)

    async def send(self, conversation: Conversation, payload: bytes) -> str:
        """The new message's id."""
        return (await self._call("POST", f"/messages/{conversation.channel}", payload)).decode()

    async def edit(self, conversation: Conversation, native: str, payload: bytes) -> None:
        """Doing it twice is harmless."""
        await self._call("PUT", f"/messages/{conversation.channel}/{native}", payload)

    async def draft(self, conversation: Conversation, key: int, text: str) -> None:
        """There are none (abilities)."""

    async def tell(self, conversation: Conversation, press: str, text: str) -> None:
        """There are no private words."""

    async def receipt(self, conversation: Conversation, message: str) -> None:
        """There are no marks on messages."""

    async def fetch(self, attachment: Attachment, to: BinaryIO) -> None:
        """There are no files."""
        raise Rejected("the platform has no files")

    async def _call(self, method: str, path: str, body: bytes = b"") -> bytes:
        try:
            async with (
                ClientSession() as http,
                http.request(method, self._url + path, data=body) as a,
            ):
                status, answer = a.status, await a.read()
        except ClientConnectorError as error:
            raise Unsent("cannot connect") from error
        except ClientError as error:
            raise Ambiguous("no answer") from error
        if status == 429:
            raise RateLimited(float(answer))
        if status == 401:
            self.last_contact = 0.0
            raise TokenRefused("the platform refuses the token")
        if status == 410:
            raise Gone("the message is not there any more")
        if status >= 500:
            raise Ambiguous(f"it answered {status}")
        if status >= 400:
            raise Rejected(f"it answered {status}")
        return answer


def _inbound(one: Happened) -> Inbound:
    where = Conversation(platform="plain", account="bot", channel=one.person, private=True)
    sender = Person(platform="plain", id=one.person)
    if one.message:
        return ButtonPressed(
            conversation=where, sender=sender, event=one.id, message=one.message, token=one.text
        )
    return MessageReceived(
        conversation=where, sender=sender, event=one.id, message=one.id, text=one.text
    )


class PlainServer:
    """That platform, with one person in it."""

    def __init__(self) -> None:
        self.url = ""
        self.happened: list[Happened] = []
        self.messages: dict[str, dict[str, object]] = {}
        self.fault: tuple[int, str] | None = None
        self.revoked = False
        self._numbers = itertools.count(1)
        self._more = asyncio.Event()

    def do(self, text: str, message: str = "") -> Happened:
        """The person says something, or presses a button of a message."""
        return self.deliver(Happened(str(next(self._numbers)), "ann", text, message))

    def deliver(self, one: Happened) -> Happened:
        """Once more, if it was delivered before."""
        self.happened.append(one)
        self._more.set()
        return one

    async def _look(self, request: web.Request) -> web.Response:
        seen = int(request.match_info["seen"])
        while len(self.happened) <= seen:
            self._more.clear()
            await self._more.wait()
        return web.Response(body=msgspec.json.encode(self.happened[seen:]))

    async def _put(self, request: web.Request) -> web.Response:
        if self.fault is not None:
            (status, text), self.fault = self.fault, None
            return web.Response(status=status, text=text)
        if self.revoked:
            return web.Response(status=401)
        known = request.match_info.get("number")
        if known is not None and known not in self.messages:
            return web.Response(status=410)
        number = known or str(next(self._numbers))
        self.messages[number] = msgspec.json.decode(await request.read())
        return web.Response(text=number)


@asynccontextmanager
async def plain() -> AsyncIterator[PlainServer]:
    server, app = PlainServer(), web.Application()
    app.router.add_get("/happened/{seen}", server._look)
    app.router.add_post("/messages/{chat}", server._put)
    app.router.add_put("/messages/{chat}/{number}", server._put)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield server
    await runner.cleanup()
