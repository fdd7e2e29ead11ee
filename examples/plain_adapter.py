"""The smallest adapter that keeps the contract, for a platform that has texts and buttons."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

import msgspec
from aiohttp import ClientConnectorError, ClientError, ClientSession
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
from gateway.views import Abilities, PlanView, SaidView, View, show_doubt

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
        if isinstance(view, SaidView):
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
