"""The HTTP API under /api. The page is one client of it, a script with the token another.

A person's conversations are theirs alone: `{id}` is completed by the client's identity, never by
the request. Every error is `{"error": "<what happened, what to do>"}`.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import msgspec
from aiohttp import web
from msgspec import Struct

from adapters.web.excerpts import find_hit, make_excerpt
from adapters.web.gate import HEADERS, UPLOAD_BYTES, RequestGate, RequestRefused, Visitor
from adapters.web.outputs import Outputs, make_file_response
from adapters.web.render import draw
from adapters.web.stream import (
    HEARTBEAT,
    EventStream,
    EventStreams,
    Inbox,
    close_inbox,
    end_nothing,
)
from adapters.web.uploads import LIMIT, Uploads
from adapters.web.wire import (
    KEY,
    AcceptedAnswer,
    CommandList,
    ConversationList,
    ConversationPage,
    Excerpt,
    Keyed,
    MessageEdit,
    NewAnswer,
    NewCommand,
    NewMessage,
    WaitingCardShown,
    WaitingList,
    answer,
    body_of,
    chunks,
    error,
    number,
    read_number,
    refuse,
)
from adapters.web.words import choose_language
from gateway import clock
from gateway.errors import StoreFailed
from gateway.messages import (
    ButtonPressed,
    CommandGiven,
    Conversation,
    FormSubmitted,
    Inbound,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    Sender,
    StopPressed,
    read_conversation,
)
from gateway.ports import Summary, WaitingCard, WebBackend, parse_words, person_scope
from gateway.views import FormCard, Media, SaidView

STATIC = Path(__file__).parent / "static"
CHAT = re.compile(r"[A-Za-z0-9_-]{1,64}")
COMMAND = re.compile(r"[a-z][a-z0-9_-]{0,31}")
VIEWS, MAX_VIEWS = 100, 2000
LIST = 100
MAX_SOUGHT = 200
ZONE, MAX_ZONE = "X-Time-Zone", 64
EXCERPTS = 12
"""Conversations of a search of which a line is shown."""
MAX_PAGES = 10
"""Pages of `MAX_VIEWS` views in which that line is searched for."""
MAX_REV = 2**53 - 1
"""The largest integer of a JavaScript client."""
CARDS = 200
"""Newest views among which a form is recognised."""

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Seat(Struct, frozen=True, kw_only=True):
    """A visitor and one of their conversations."""

    sender: Sender
    conversation: Conversation

    def event(self, key: str) -> str:
        """`key` as a delivery's id: two people's keys never meet."""
        return f"{self.conversation.channel}~{key}"


def guard(gate: RequestGate, handler: Handler) -> Handler:
    """`handler` behind the gate: foreign requests refused, errors worded, headers set."""

    async def call(request: web.Request) -> web.StreamResponse:
        try:
            gate.check(request.method, request.headers)
            response = await handler(request)
        except RequestRefused as refused:
            response = refuse(refused)
        except StoreFailed:
            response = error(
                503,
                "The gateway could not keep this: its store does not answer or "
                "its disk is full. Nothing was done; try again soon.",
            )
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    return call


async def identify(gate: RequestGate, request: web.Request) -> Visitor:
    """Return the visitor."""
    cookie = request.cookies.get(gate.cookie, "")
    return await gate.identify(request.headers, cookie, request.remote or "")


def guard_metrics(gate: RequestGate, handler: Handler) -> Handler:
    """`handler` for who may see the counters of this process."""

    async def call(request: web.Request) -> web.StreamResponse:
        try:
            gate.check_metrics(request.headers, request.remote or "")
        except RequestRefused as refused:
            return refuse(refused)
        return await handler(request)

    return call


class Api:
    """The handlers; `enter` decides who asks."""

    def __init__(
        self,
        backend: WebBackend,
        gate: RequestGate,
        streams: EventStreams,
        uploads: Uploads,
        outputs: Outputs,
    ) -> None:
        self._backend = backend
        self._gate = gate
        self._uploads = uploads
        self._outputs = outputs
        self._streams = streams

    @property
    def routes(self) -> list[web.AbstractRouteDef]:
        """Every route under /api."""
        one = "/api/conversations/{id}"
        handlers: tuple[tuple[str, str, Handler], ...] = (
            ("GET", "/api/openapi.json", self._openapi),
            ("POST", "/api/uploads", self._upload),
            ("GET", "/api/commands", self._commands),
            ("GET", "/api/conversations", self._list),
            ("GET", "/api/waiting", self._list_waiting),
            ("GET", one, self._open),
            ("DELETE", one, self._remove),
            ("GET", f"{one}/events", self._events),
            ("GET", f"{one}/files/{{ref:.+}}", self._file),
            ("POST", f"{one}/messages", self._message),
            ("PUT", f"{one}/messages/{{message}}", self._edit),
            ("DELETE", f"{one}/messages/{{message}}", self._withdraw),
            ("POST", f"{one}/answers", self._answer),
            ("POST", f"{one}/commands", self._command),
            ("POST", f"{one}/stop", self._stop),
        )
        return [web.route(way, path, guard(self._gate, call)) for way, path, call in handlers]

    async def _openapi(self, request: web.Request) -> web.StreamResponse:
        return web.FileResponse(STATIC / "openapi.json")

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        sender = await self._enter(request)
        if (request.content_length or 0) > UPLOAD_BYTES:
            raise RequestRefused(413, f"The file is larger than {LIMIT}. Send a smaller one.")
        name = request.query.get("name", "file")
        kept = await self._uploads.keep(sender.id, name, chunks(request))
        return answer(kept, 201)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        sender = await self._enter(request)
        words = request.query.get("q", "")
        if len(words) > MAX_SOUGHT:
            raise RequestRefused(400, f"Search for at most {MAX_SOUGHT} characters.")
        found = await self._backend.recent(person_scope(sender.key), LIST, words)
        own = tuple(msgspec.structs.replace(one, conversation=_chat(one)) for one in found)
        excerpts = await self._find_excerpts(found, words) if words.strip() else ()
        return answer(ConversationList(person=sender.id, conversations=own, found=excerpts))

    async def _find_excerpts(self, found: Sequence[Summary], words: str) -> tuple[Excerpt, ...]:
        """Return excerpts of the first conversations only, as people refine their search."""
        excerpts = [await self._find_excerpt(one, words) for one in found[:EXCERPTS]]
        return tuple(one for one in excerpts if one is not None)

    async def _find_excerpt(self, one: Summary, words: str) -> Excerpt | None:
        """Search the views page by page, from the newest on."""
        sought, hit, before = parse_words(words), None, 0
        for _ in range(MAX_PAGES):
            shown = await self._backend.latest(one.conversation, MAX_VIEWS, before)
            hit = await asyncio.to_thread(find_hit, shown, sought, hit)
            if len(shown) < MAX_VIEWS or (hit is not None and hit[0] == len(sought)):
                break
            before = shown[0].position
        return make_excerpt(_chat(one), hit, sought) if hit is not None else None

    async def _list_waiting(self, request: web.Request) -> web.StreamResponse:
        sender = await self._enter(request)
        found = await self._backend.list_waiting(sender)
        return answer(WaitingList(waiting=tuple(_show_waiting(one, sender) for one in found)))

    async def _commands(self, request: web.Request) -> web.StreamResponse:
        sender = await self._enter(request)
        return answer(CommandList(commands=self._backend.commands(sender)))

    async def _open(self, request: web.Request) -> web.StreamResponse:
        seat = await self._seat(request)
        limit = read_number(request, "limit", VIEWS, 1, MAX_VIEWS)
        before = read_number(request, "before", 0, 0, MAX_REV)
        shown = await self._backend.latest(seat.conversation.id, limit, before)
        now = await self._backend.read_standing(seat.conversation.id)
        views = await asyncio.to_thread(lambda: tuple(map(draw, shown)))
        return answer(
            ConversationPage(
                conversation=request.match_info["id"],
                title=now.title,
                state=now.state,
                model=now.model,
                waiting=now.waiting,
                views=views,
                rev=max((one.rev for one in shown), default=0),
                more=len(shown) == limit,
            )
        )

    async def _remove(self, request: web.Request) -> web.StreamResponse:
        """The person's own, for good; a second time there is nothing to do."""
        seat = await self._seat(request)
        if not await self._backend.remove(seat.conversation.id):
            text = "Something runs here, or a job belongs here. Stop it or delete the job first."
            raise RequestRefused(409, text)
        self._streams.put(seat.conversation.id, "removed")
        return answer(AcceptedAnswer(accepted=True, key=""))

    async def _events(self, request: web.Request) -> web.StreamResponse:
        visitor, seat = await identify(self._gate, request), await self._seat(request)
        after = read_number(request, "after", 0, 0, MAX_REV)
        after = number(request.headers.get("Last-Event-ID"), after)
        response = web.StreamResponse(headers={**HEADERS, "X-Accel-Buffering": "no"})
        response.content_type = "text/event-stream"
        address = seat.conversation.id
        transport = request.transport
        end = transport.abort if transport is not None else end_nothing
        with self._streams.join(address, visitor.session, visitor.person, end) as inbox:
            stream = EventStream(self._backend, address, after, response.write)
            try:
                await response.prepare(request)
                async with asyncio.TaskGroup() as group:
                    watching = group.create_task(self._watch(visitor, inbox))
                    await stream.run(inbox)
                    watching.cancel()
            except* (ConnectionError, StoreFailed):
                pass  # the client reconnects with the id of its last event
        return response

    async def _watch(self, visitor: Visitor, inbox: Inbox) -> None:
        """Close the stream of a session that ended on any replica."""
        book, session = self._gate.book, visitor.session
        while not session or await book.is_open(visitor.person, session):
            await clock.wait(HEARTBEAT)
        close_inbox(inbox)

    async def _file(self, request: web.Request) -> web.StreamResponse:
        """Return a file that the agent sent in this conversation, or a picture that its person
        sent: one of its views must contain it."""
        seat, ref = await self._seat(request), request.match_info["ref"]
        before, more = 0, True
        while more:
            shown = await self._backend.latest(seat.conversation.id, MAX_VIEWS, before)
            views = (one.view for one in shown)
            held = (view.files for view in views if isinstance(view, Media | SaidView))
            for file in chain.from_iterable(held):
                if file.ref == ref:
                    return make_file_response(file, self._outputs.find(ref))
            more = len(shown) == MAX_VIEWS
            before = shown[0].position if more else 0
        raise RequestRefused(404, "There is no such file in this conversation. Ask for it again.")

    async def _message(self, request: web.Request) -> web.StreamResponse:
        seat = await self._seat(request)
        body, key = await body_of(request, NewMessage)
        if not body.text.strip() and not body.attachments:
            raise RequestRefused(400, "The message is empty. Write something.")
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

    async def _edit(self, request: web.Request) -> web.StreamResponse:
        seat, message = await self._seat(request), self._read_message(request)
        body, key = await body_of(request, MessageEdit)
        if not body.text.strip():
            raise RequestRefused(400, "The message is empty. Write something, or withdraw it.")
        edit = MessageEdited(
            conversation=seat.conversation,
            sender=seat.sender,
            event=seat.event(key),
            message=message,
            text=body.text,
            command=_name_command(body.text),
        )
        return await self._accept(edit, key)

    async def _withdraw(self, request: web.Request) -> web.StreamResponse:
        seat, message = await self._seat(request), self._read_message(request)
        deleted = MessageDeleted(
            conversation=seat.conversation,
            sender=seat.sender,
            event=seat.event(f"{message}~withdrawn"),
            message=message,
        )
        return await self._accept(deleted, message)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        seat = await self._seat(request)
        body, key = await body_of(request, NewAnswer)
        recent = await self._backend.latest(seat.conversation.id, CARDS)
        cards = (shown.view for shown in recent)
        form = any(isinstance(card, FormCard) and card.token == body.token for card in cards)
        given: Inbound
        if form:
            given = FormSubmitted(
                conversation=seat.conversation,
                sender=seat.sender,
                event=seat.event(key),
                token=body.token,
                text=body.text,
                press=key,
            )
        else:
            given = ButtonPressed(
                conversation=seat.conversation,
                sender=seat.sender,
                event=seat.event(key),
                message="",
                token=body.token,
                press=key,
                text=body.text,
            )
        return await self._accept(given, key)

    async def _command(self, request: web.Request) -> web.StreamResponse:
        seat = await self._seat(request)
        body, key = await body_of(request, NewCommand)
        name = body.name.lower()
        if not COMMAND.fullmatch(name):
            raise RequestRefused(400, "This is not a command's name. Try /help.")
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
        seat = await self._seat(request)
        _, key = await body_of(request, Keyed)
        stop = StopPressed(
            conversation=seat.conversation, sender=seat.sender, event=seat.event(key), press=key
        )
        return await self._accept(stop, key)

    async def _accept(self, inbound: Inbound, key: str) -> web.StreamResponse:
        await self._backend.accept([inbound])
        self._streams.put(inbound.conversation.id, "look")
        return answer(AcceptedAnswer(accepted=True, key=key), 202)

    async def _enter(self, request: web.Request) -> Sender:
        person = (await identify(self._gate, request)).person
        language = choose_language(request.headers.get("Accept-Language", ""))
        zone = request.headers.get(ZONE, "")[:MAX_ZONE]
        sender = Sender(platform="web", id=person, name=person, language=language, zone=zone)
        role = await self._backend.find_role(sender)
        if role is None:
            raise RequestRefused(
                403, f"{person} may not use this gateway. Ask an admin to let you in."
            )
        if role == "viewer" and request.method not in ("GET", "HEAD"):
            raise RequestRefused(403, "You may read here, not write. Ask an admin for more.")
        return sender

    def _read_message(self, request: web.Request) -> str:
        message = request.match_info["message"]
        if not KEY.fullmatch(message):
            raise RequestRefused(404, "There is no such message. Look at the conversation again.")
        return message

    async def _seat(self, request: web.Request) -> Seat:
        sender, chat = await self._enter(request), request.match_info["id"]
        if not CHAT.fullmatch(chat):
            raise RequestRefused(404, "There is no such conversation. Open one from the list.")
        return Seat(sender=sender, conversation=_address(sender.id, chat))


def _address(person: str, chat: str) -> Conversation:
    return Conversation(platform="web", account="local", channel=f"{person}~{chat}", private=True)


def _show_waiting(card: WaitingCard, sender: Sender) -> WaitingCardShown:
    where = read_conversation(card.conversation)
    person, _, chat = where.channel.partition("~")
    own = where.platform == "web" and person == sender.id
    return WaitingCardShown(text=card.text, conversation=chat if own else "", since=card.since)


def _chat(summary: Summary) -> str:
    """The conversation's id as its person knows it."""
    return read_conversation(summary.conversation).channel.partition("~")[2]


def _name_command(text: str) -> str:
    """The name of the command that the text is, "" if it is none."""
    first = text.split(maxsplit=1)[0].lower()
    return first[1:] if first[0] == "/" and COMMAND.fullmatch(first[1:]) else ""
