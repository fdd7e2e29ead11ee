"""The smallest adapter that keeps the contract, for a platform that has texts and buttons."""

from collections.abc import Sequence
from typing import BinaryIO

import msgspec
from aiohttp import ClientConnectorError, ClientError, ClientSession, web

from gateway import clock, errors
from gateway.command_texts import write_in_view
from gateway.messages import Attachment, ButtonPressed, Conversation, Inbound, MessageReceived
from gateway.messages import Sender as Person
from gateway.ports import Accept
from gateway.views import Abilities, PlanView, SaidView, View, show_doubt

REFUSALS = {401: errors.TokenRefused, 410: errors.Gone}


class Happened(msgspec.Struct, frozen=True):
    """What somebody did: said `text`, or pressed the button with the token `text`."""

    id: str
    person: str
    text: str
    message: str = ""


class PlainAdapter:
    """Polls for what happened; every call is an HTTP request."""

    platform = "plain"
    abilities = Abilities()
    routes: Sequence[web.AbstractRouteDef] = ()

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
            except (errors.DeliveryError, errors.StoreFailed):
                await clock.wait(0.01)

    def render(self, view: View, conversation: Conversation) -> tuple[bytes, ...]:
        """A view's words, whichever it is, with commands as `/stop`, and its buttons."""
        if isinstance(view, SaidView):
            return ()
        view = write_in_view(show_doubt(view))
        words = [getattr(view, name, "") for name in ("title", "text", "words", "caption")]
        if isinstance(view, PlanView):
            words += [step.text for step in view.steps]
        buttons = {one.label: one.token for one in getattr(view, "buttons", ())}
        text = "\n".join(filter(None, words)) or type(view).__name__
        return (msgspec.json.encode({"text": text, "buttons": buttons}),)

    async def send(self, conversation: Conversation, payload: bytes, answers: str = "") -> str:
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
        raise errors.Rejected("the platform has no files")

    async def _call(self, method: str, path: str, body: bytes = b"") -> bytes:
        url = self._url + path
        try:
            async with ClientSession() as http, http.request(method, url, data=body) as response:
                status, answer = response.status, await response.read()
        except ClientError as error:
            never = isinstance(error, ClientConnectorError)
            raise (errors.Unsent if never else errors.Ambiguous)("no answer") from error
        if status < 400:
            return answer
        if status == 429:
            raise errors.RateLimited(answer.decode(errors="replace"))
        if status == 401:
            self.last_contact = 0.0
        failure = errors.Ambiguous if status >= 500 else errors.Rejected
        raise REFUSALS.get(status, failure)(f"it answered {status}")


def _inbound(one: Happened) -> Inbound:
    where = Conversation(platform="plain", account="bot", channel=one.person, private=True)
    who = Person(platform="plain", id=one.person)
    if not one.message:
        return MessageReceived(
            conversation=where, sender=who, event=one.id, message=one.id, text=one.text
        )
    return ButtonPressed(
        conversation=where, sender=who, event=one.id, message=one.message, token=one.text
    )
