"""The API's requests and answers, and their encoding."""

import re
from collections.abc import AsyncIterator
from typing import TypeVar

import msgspec
from aiohttp import web
from msgspec import Struct

from adapters.web.gate import JSON_BYTES, RequestRefused
from adapters.web.render import RenderedView
from gateway import clock
from gateway.ports import Offered, Summary, Waiting

KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")

Body = TypeVar("Body", bound="Keyed")


class Keyed(Struct, frozen=True, kw_only=True):
    """A post; `key` makes it idempotent."""

    key: str = ""


class NewMessage(Keyed, frozen=True, kw_only=True):
    """A person writes; `attachments` are references that an upload gave."""

    text: str = ""
    attachments: tuple[str, ...] = ()


class MessageEdit(Keyed, frozen=True, kw_only=True):
    """Other words for a message that waits."""

    text: str


class NewAnswer(Keyed, frozen=True, kw_only=True):
    """A press; `text` is the form's text, or the reason."""

    token: str
    text: str = ""


class NewCommand(Keyed, frozen=True, kw_only=True):
    """`/name arguments`."""

    name: str
    arguments: str = ""


class AcceptedAnswer(Struct, frozen=True, kw_only=True):
    """Accepted; `key` is the one given or a new one."""

    accepted: bool
    key: str


class Excerpt(Struct, frozen=True, kw_only=True):
    """A search result in a conversation: a line of one of its views. `parts`: the text split at the
    words that were found, which are each second part."""

    conversation: str
    turn: str
    name: str
    text: str
    parts: tuple[str, ...] = ()


class ConversationList(Struct, frozen=True, kw_only=True):
    """The conversations of `person`, newest first. `found`: search results in the first of them."""

    person: str
    conversations: tuple[Summary, ...]
    found: tuple[Excerpt, ...] = ()


class CommandList(Struct, frozen=True, kw_only=True):
    """The commands that the visitor may give."""

    commands: tuple[Offered, ...]


class WaitingCardShown(Struct, frozen=True, kw_only=True):
    """A question that waits for who asks. `conversation`: the one of theirs at the page where it
    is answered, "" for one on another platform; `since` seconds since 1970."""

    text: str
    conversation: str
    since: float


class WaitingList(Struct, frozen=True, kw_only=True):
    """All questions that wait for the visitor, the newest conversations first."""

    waiting: tuple[WaitingCardShown, ...]


class ConversationPage(Struct, frozen=True, kw_only=True):
    """A page of history; `rev` is where its event stream continues, `more`: there are older views;
    `model`: the one that answers."""

    conversation: str
    title: str
    state: str
    model: str
    waiting: tuple[Waiting, ...]
    views: tuple[RenderedView, ...]
    rev: int
    more: bool


def number(text: str | None, default: int) -> int:
    """Parse a number in a header."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else default


def read_number(request: web.Request, name: str, default: int, least: int, most: int) -> int:
    """The number `name` of the request's address."""
    text = request.query.get(name)
    if text is None:
        return default
    found = number(text, -1)
    if not least <= found <= most:
        raise RequestRefused(400, f"{name} is a number from {least} to {most}.")
    return found


def answer(value: object, status: int = 200) -> web.Response:
    """`value` as JSON."""
    body = msgspec.json.encode(value)
    return web.Response(body=body, status=status, content_type="application/json")


def error(status: int, text: str) -> web.Response:
    """Make an error: what happened, what to do."""
    return answer({"error": text}, status)


def refuse(refused: RequestRefused) -> web.Response:
    """Make the answer to a refused request."""
    response = error(refused.status, refused.reason)
    if refused.wait:
        response.headers["Retry-After"] = str(refused.wait)
    return response


async def chunks(request: web.Request) -> AsyncIterator[bytes]:
    """The request's body as it arrives."""
    async for chunk in request.content.iter_any():
        yield chunk


async def body_of(request: web.Request, kind: type[Body]) -> tuple[Body, str]:
    """The request's JSON as `kind`, and its key."""
    data = bytearray()
    if (request.content_length or 0) <= JSON_BYTES:
        async for chunk in request.content.iter_any():
            data += chunk
            if len(data) > JSON_BYTES:
                break
    if max(len(data), request.content_length or 0) > JSON_BYTES:
        raise RequestRefused(413, "This is more than 1 MB. Send it as a file.")
    try:
        body = msgspec.json.decode(bytes(data) or b"{}", type=kind)
    except RecursionError:
        raise RequestRefused(400, "This JSON is nested too deep. Send it flat.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestRefused(400, f"This is not the JSON that belongs here: {error}.") from error
    if body.key and not KEY.fullmatch(body.key):
        raise RequestRefused(
            400, "A key is 1 to 64 letters, digits and ._-; leave it out to get one."
        )
    return body, body.key or clock.new_id()
