"""The HTTP API under /api. The page is one client of it, a script with the token another.

A person's conversations are theirs alone: `{id}` is completed by who asks, never by what is
asked. Every error is `{"error": "<what happened, what to do>"}`.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec
from aiohttp import web
from msgspec import Struct

from adapters.web.gate import HEADERS, JSON_BYTES, UPLOAD_BYTES, Gate, Refused
from adapters.web.render import Drawn, draw
from adapters.web.stream import Stream, Streams, standing
from adapters.web.uploads import LIMIT, Uploads
from gateway import clock
from gateway.errors import StoreFailed
from gateway.messages import (
    ButtonPressed,
    CommandGiven,
    Conversation,
    FormSubmitted,
    Inbound,
    MessageReceived,
    Sender,
    StopPressed,
    read_conversation,
)
from gateway.ports import Desk, Summary, Waiting
from gateway.views import FormCard

STATIC = Path(__file__).parent / "static"
CHAT = re.compile(r"[A-Za-z0-9_-]{1,64}")
KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
COMMAND = re.compile(r"[a-z][a-z0-9_-]{0,31}")
VIEWS, MOST_VIEWS = 100, 2000
LIST = 100
CARDS = 200
"""How many views back a form may be and still be known as one."""

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
Body = TypeVar("Body", bound="Keyed")


class Keyed(Struct, frozen=True, kw_only=True):
    """What every post may say: `key` makes sending it again harmless."""

    key: str = ""


class NewMessage(Keyed, frozen=True, kw_only=True):
    """A person writes; `attachments` are references that an upload gave."""

    text: str = ""
    attachments: tuple[str, ...] = ()


class NewAnswer(Keyed, frozen=True, kw_only=True):
    """A button's or form's token; `text` is what was written, or the reason."""

    token: str
    text: str = ""


class NewCommand(Keyed, frozen=True, kw_only=True):
    """`/name arguments`."""

    name: str
    arguments: str = ""


class Accepted(Struct, frozen=True, kw_only=True):
    """Kept; `key` is the one given or a new one."""

    accepted: bool
    key: str


class Listed(Struct, frozen=True, kw_only=True):
    """The conversations of `person`, newest first."""

    person: str
    conversations: tuple[Summary, ...]


class Opened(Struct, frozen=True, kw_only=True):
    """A page of history; `rev` is where its event stream goes on, `more` whether there is older."""

    conversation: str
    title: str
    state: str
    waiting: tuple[Waiting, ...]
    views: tuple[Drawn, ...]
    rev: int
    more: bool


class Seat(Struct, frozen=True, kw_only=True):
    """Who asks, about which of their conversations."""

    sender: Sender
    conversation: Conversation

    def event(self, key: str) -> str:
        """`key` as a delivery's id: two people's keys never meet."""
        return f"{self.conversation.channel}~{key}"


def guarded(gate: Gate, handler: Handler) -> Handler:
    """`handler` behind the gate: foreign requests refused, errors worded, headers set."""

    async def call(request: web.Request) -> web.StreamResponse:
        try:
            gate.check(request.method, request.headers)
            response = await handler(request)
        except Refused as refused:
            response = _error(refused.status, refused.reason)
        except StoreFailed:
            response = _error(503, "The gateway could not keep this: its store does not answer or "
                              "its disk is full. Nothing was done; try again soon.")  # fmt: skip
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    return call


class Api:
    """The handlers; `enter` decides who asks."""

    def __init__(self, desk: Desk, gate: Gate, uploads: Uploads, streams: Streams) -> None:
        self._desk = desk
        self._gate = gate
        self._uploads = uploads
        self._streams = streams

    @property
    def routes(self) -> list[web.AbstractRouteDef]:
        """Every route under /api."""
        one = "/api/conversations/{id}"
        handlers: tuple[tuple[str, str, Handler], ...] = (
            ("GET", "/api/openapi.json", self._openapi),
            ("POST", "/api/uploads", self._upload),
            ("GET", "/api/conversations", self._list),
            ("GET", one, self._open),
            ("GET", f"{one}/events", self._events),
            ("POST", f"{one}/messages", self._message),
            ("POST", f"{one}/answers", self._answer),
            ("POST", f"{one}/commands", self._command),
            ("POST", f"{one}/stop", self._stop),
        )
        return [web.route(way, path, guarded(self._gate, call)) for way, path, call in handlers]

    async def _openapi(self, request: web.Request) -> web.StreamResponse:
        return web.FileResponse(STATIC / "openapi.json")

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        sender = self._enter(request)
        if (request.content_length or 0) > UPLOAD_BYTES:
            raise Refused(413, f"The file is larger than {LIMIT}. Send a smaller one.")
        name = request.query.get("name", "file")
        kept = await self._uploads.keep(sender.id, name, _chunks(request))
        return _json(kept, 201)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        sender = self._enter(request)
        prefix, mark, _ = _address(sender.id, "").id.partition("~")
        found = await self._desk.conversations(prefix + mark, LIST)
        own = tuple(msgspec.structs.replace(one, conversation=_chat(one)) for one in found)
        return _json(Listed(person=sender.id, conversations=own))

    async def _open(self, request: web.Request) -> web.StreamResponse:
        seat = self._seat(request)
        limit = min(max(_number(request.query.get("limit"), VIEWS), 1), MOST_VIEWS)
        shown = await self._desk.latest(seat.conversation.id, limit)
        now = await standing(self._desk, seat.conversation.id)
        views = await asyncio.to_thread(lambda: tuple(map(draw, shown)))
        return _json(
            Opened(
                conversation=request.match_info["id"],
                title=now.title,
                state=now.state,
                waiting=now.waiting,
                views=views,
                rev=max((one.rev for one in shown), default=0),
                more=len(shown) == limit < MOST_VIEWS,
            )
        )

    async def _events(self, request: web.Request) -> web.StreamResponse:
        seat = self._seat(request)
        after = request.headers.get("Last-Event-ID") or request.query.get("after")
        response = web.StreamResponse(headers={**HEADERS, "X-Accel-Buffering": "no"})
        response.content_type = "text/event-stream"
        address = seat.conversation.id
        with self._streams.join(address) as inbox:
            await response.prepare(request)
            stream = Stream(self._desk, address, _number(after, 0), response.write)
            try:
                await stream.run(inbox)
            except* (ConnectionResetError, StoreFailed):
                pass  # the reader comes back with the id of its last event
        return response

    async def _message(self, request: web.Request) -> web.StreamResponse:
        seat = self._seat(request)
        body, key = await _body(request, NewMessage)
        if not body.text.strip() and not body.attachments:
            raise Refused(400, "The message is empty. Write something.")
        files = tuple(self._uploads.find(seat.sender.id, ref) for ref in body.attachments)
        said = MessageReceived(
            conversation=seat.conversation,
            sender=seat.sender,
            event=seat.event(key),
            message=key,
            text=body.text,
            attachments=files,
            at=clock.now(),
        )
        return await self._accept(said, key)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        seat = self._seat(request)
        body, key = await _body(request, NewAnswer)
        recent = await self._desk.latest(seat.conversation.id, CARDS)
        cards = (shown.view for shown in recent)
        form = any(isinstance(card, FormCard) and card.token == body.token for card in cards)
        answer: Inbound
        if form:
            answer = FormSubmitted(
                conversation=seat.conversation,
                sender=seat.sender,
                event=seat.event(key),
                token=body.token,
                text=body.text,
                press=key,
            )
        else:
            answer = ButtonPressed(
                conversation=seat.conversation,
                sender=seat.sender,
                event=seat.event(key),
                message="",
                token=body.token,
                press=key,
                text=body.text,
            )
        return await self._accept(answer, key)

    async def _command(self, request: web.Request) -> web.StreamResponse:
        seat = self._seat(request)
        body, key = await _body(request, NewCommand)
        name = body.name.lower()
        if not COMMAND.fullmatch(name):
            raise Refused(400, "This is not a command's name. Try /help.")
        given = CommandGiven(
            conversation=seat.conversation,
            sender=seat.sender,
            event=seat.event(key),
            message=key,
            name=name,
            arguments=body.arguments.strip(),
        )
        return await self._accept(given, key)

    async def _stop(self, request: web.Request) -> web.StreamResponse:
        seat = self._seat(request)
        _, key = await _body(request, Keyed)
        stop = StopPressed(
            conversation=seat.conversation, sender=seat.sender, event=seat.event(key), press=key
        )
        return await self._accept(stop, key)

    async def _accept(self, inbound: Inbound, key: str) -> web.StreamResponse:
        await self._desk.accept([inbound])
        self._streams.put(inbound.conversation.id, "look")
        return _json(Accepted(accepted=True, key=key), 202)

    def _enter(self, request: web.Request) -> Sender:
        person = self._gate.person(request.headers, request.cookies.get(self._gate.cookie))
        sender = Sender(platform="web", id=person, name=person)
        role = self._desk.person(sender)
        if role is None:
            raise Refused(403, f"{person} may not use this gateway. Ask an admin to let you in.")
        if role == "viewer" and request.method == "POST":
            raise Refused(403, "You may read here, not write. Ask an admin for more.")
        return sender

    def _seat(self, request: web.Request) -> Seat:
        sender, chat = self._enter(request), request.match_info["id"]
        if not CHAT.fullmatch(chat):
            raise Refused(404, "There is no such conversation. Open one from the list.")
        return Seat(sender=sender, conversation=_address(sender.id, chat))


def _address(person: str, chat: str) -> Conversation:
    return Conversation(platform="web", account="local", channel=f"{person}~{chat}", private=True)


def _chat(summary: Summary) -> str:
    """The conversation's id as its person knows it."""
    return read_conversation(summary.conversation).channel.partition("~")[2]


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else default


def _json(value: object, status: int = 200) -> web.Response:
    body = msgspec.json.encode(value)
    return web.Response(body=body, status=status, content_type="application/json")


def _error(status: int, text: str) -> web.Response:
    return _json({"error": text}, status)


async def _chunks(request: web.Request) -> AsyncIterator[bytes]:
    async for chunk in request.content.iter_any():
        yield chunk


async def _body(request: web.Request, kind: type[Body]) -> tuple[Body, str]:
    """The request's JSON as `kind`, and its key."""
    data = bytearray()
    if (request.content_length or 0) <= JSON_BYTES:
        async for chunk in request.content.iter_any():
            data += chunk
            if len(data) > JSON_BYTES:
                break
    if max(len(data), request.content_length or 0) > JSON_BYTES:
        raise Refused(413, "This is more than 1 MB. Send it as a file.")
    try:
        body = msgspec.json.decode(bytes(data) or b"{}", type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(400, f"This is not the JSON that belongs here: {error}.") from error
    if body.key and not KEY.fullmatch(body.key):
        raise Refused(400, "A key is 1 to 64 letters, digits and ._-; leave it out to get one.")
    return body, body.key or clock.new_id()
