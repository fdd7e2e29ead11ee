"""'Ask the agent about this message': a shortcut in a message's menu.

It opens a window for the question, which becomes a message in the thread of the chosen one.
"""

import logging
from typing import cast

import msgspec
from msgspec import Struct

from adapters.incoming import read_string
from adapters.slack.history import read_whole
from adapters.slack.parse import ID, STAMP, Json, SlackBot, place, place_presser, read_words
from adapters.slack.people import SlackPeople
from adapters.slack.transport import SlackWire
from gateway import clock
from gateway.errors import DeliveryError, Rejected
from gateway.messages import Conversation, Inbound, MessageReceived, Quote, Sender
from gateway.texts import Key, say

log = logging.getLogger("adapters.slack")

SHORTCUT = "ask_about"
"""Its `callback_id`, as in the app's manifest."""
WINDOW = "about"
QUOTED, ASKED = 1_000, 3_000
"""Maximum characters of the message kept in a window (3,000 in all, as JSON), and of a question."""
OPENING = 2.5
"""A trigger lives for three seconds."""


class _Named(Struct, frozen=True):
    id: str = ""
    team_id: object = ""


class _Message(Struct, frozen=True):
    ts: str = ""
    thread_ts: str = ""
    user: str = ""
    username: object = ""


class _Chosen(Struct, frozen=True):
    """Slack's payload when somebody chooses a shortcut."""

    type: str
    callback_id: str
    trigger_id: str
    user: _Named
    channel: _Named
    message: _Message


class _About(Struct, frozen=True, kw_only=True):
    """The data kept in the window."""

    channel: str
    thread: str
    message: str
    author: str
    text: str


class MessageShortcut:
    """Opens the windows. Where the bot cannot read, it says so: it could not answer there."""

    def __init__(self, wire: SlackWire, people: SlackPeople) -> None:
        self._wire, self._people = wire, people

    async def handle_shortcut(self, payload: Json, me: SlackBot) -> bool:
        """False if the payload is something else."""
        chosen = read(payload)
        if chosen is None:
            return False
        try:
            async with clock.limit(OPENING):
                person = await self._resolve_user(chosen.user.id)
                text = read_whole(cast(Json, payload["message"]), me.user)
                view = await self._window(chosen, _shorten(text), me, person.language)
                given = {"trigger_id": chosen.trigger_id, "view": view}
                await self._wire.call("views.open", given)
        except (DeliveryError, TimeoutError) as error:
            log.warning("slack_no_modal", extra={"why": str(error)})
        return True

    async def _window(self, chosen: _Chosen, text: str, me: SlackBot, language: str) -> Json:
        message, channel = chosen.message, chosen.channel.id
        looked = {"channel": channel, "ts": message.thread_ts or message.ts, "limit": 1}
        try:
            await self._wire.call("conversations.replies", looked, form=True)
        except Rejected as error:
            log.info("slack_cannot_ask_here", extra={"why": str(error)})
            return _refusal(language)
        author = await self._resolve_user(message.user)
        about = _About(
            channel=channel,
            thread=message.thread_ts or message.ts,
            message=message.ts,
            author=(author.name or read_string(message.username))[:100],
            text=text,
        )
        return window(about, language)

    async def _resolve_user(self, user: str) -> Sender:
        return await self._people.resolve_sender(Sender(platform="slack", id=user))


def read(payload: Json) -> _Chosen | None:
    """Parse the choice of our shortcut, shortened for the window; None if it is none."""
    try:
        chosen = msgspec.convert(payload, _Chosen)
    except msgspec.ValidationError:
        return None
    ours = (chosen.type, chosen.callback_id) == ("message_action", SHORTCUT)
    stamps = (chosen.message.ts, chosen.message.thread_ts or chosen.message.ts)
    known = ID.fullmatch(chosen.channel.id) and all(map(STAMP.fullmatch, stamps))
    return chosen if ours and known else None


def window(about: _About, language: str) -> Json:
    """Make the window, with one field for the question."""
    field: Json = {
        "type": "plain_text_input",
        "action_id": "words",
        "multiline": True,
        "max_length": ASKED,
        "focus_on_load": True,
    }
    title = _make_text("your_question", language)
    block: Json = {"type": "input", "block_id": "words", "label": title, "element": field}
    return {
        "type": "modal",
        "callback_id": WINDOW,
        "private_metadata": msgspec.json.encode(about).decode(),
        "title": title,
        "submit": _make_text("send_off", language),
        "close": _make_text("back", language),
        "blocks": [block],
    }


def _refusal(language: str) -> Json:
    words: Json = {"type": "section", "text": _make_text("not_in_here", language)}
    title, close = _make_text("your_question", language), _make_text("back", language)
    return {
        "type": "modal",
        "callback_id": "none",
        "title": title,
        "close": close,
        "blocks": [words],
    }


def read_question(payload: Json, me: SlackBot) -> Inbound | None:
    """Parse the submitted question, in the thread of the message; None if it is none."""
    view, user = payload.get("view"), payload.get("user")
    if payload.get("type") != "view_submission":
        return None
    if not isinstance(view, dict) or view.get("callback_id") != WINDOW:
        return None
    try:
        about = msgspec.json.decode(read_string(view.get("private_metadata")), type=_About)
        person = msgspec.convert(user, _Named)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
    number, text = read_string(view.get("id")), "\n".join(read_words(view)).strip()
    if not number or not text or not person.id:
        return None
    return MessageReceived(
        conversation=_find_conversation(about, me),
        sender=place_presser(person.id, person.team_id, me),
        event=f"v{number}",
        message=f"v{number}",
        text=text,
        reply_to=Quote(message=about.message, author=about.author, text=about.text),
    )


def _find_conversation(about: _About, me: SlackBot) -> Conversation:
    return place(me, about.channel, about.thread)


def _shorten(text: str) -> str:
    return text if len(text) <= QUOTED else f"{text[:QUOTED].rstrip()} …"


def _make_text(key: Key, language: str) -> Json:
    return {"type": "plain_text", "text": say(key, language), "emoji": False}
