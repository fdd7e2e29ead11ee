"""Places a task in a server: in a thread of its own, made from the message that asks for it.

A thread made from a message has that message's id. So the task's conversation has its address
before the thread exists, and the thread can be looked up: it is made once, even over a crash. Where
the bot may make none, the task is in the channel, as replies to that message.
"""

import logging
from typing import TypeVar

from discord.http import Route
from msgspec import Struct

from adapters.discord.parse import MENTION, Channel, Json, channel_of, read_channel, read_own_role
from adapters.discord.transport import DiscordRefused, DiscordWire
from gateway import clock
from gateway.errors import Ambiguous, RateLimited, Rejected, Unsent
from gateway.messages import Conversation

log = logging.getLogger("adapters.discord")

T = TypeVar("T")

ANSWERED, UNKNOWN_MESSAGE = (160004,), 10008
UNKNOWN = (10003, UNKNOWN_MESSAGE)
"""Discord's codes: the message has a thread already; no such channel or message."""
ARCHIVED = 50083
"""Discord's code: the thread was put away."""
CLOSED_FOR = 600.0
"""Seconds for which a channel is not asked again that lets us make no threads."""
PATIENCE = 5.0
"""Longest rate limit on new threads that is waited for."""
NAME, MAX_KNOWN = 60, 5_000
UNNAMED = "…"


class TaskChannel(Struct, frozen=True, kw_only=True):
    """The channel or thread to write to; in a channel, `reply_to` is the task's first message."""

    channel: str
    reply_to: str = ""


class Threads:
    """A cache of channels and threads."""

    def __init__(self, wire: DiscordWire) -> None:
        self._wire = wire
        self._channels: dict[str, Channel] = {}
        self._places: dict[str, TaskChannel] = {}
        self._closed: dict[str, float] = {}
        self._roles: dict[str, str] = {}

    async def channel(self, event: Json) -> Channel:
        """Return the channel of the event, requested once."""
        number = channel_of(event)
        if not number:
            return Channel()
        if number not in self._channels:
            told = read_channel(event.get("channel")) or await self._fetch_channel(number)
            _put(self._channels, number, told)
        return self._channels[number]

    async def find_own_role(self, guild: str, bot: str) -> str:
        """Return the role that the server made for the bot alone, "" if there is none, requested
        once."""
        if guild not in self._roles:
            route = Route("GET", "/guilds/{guild_id}/roles", guild_id=guild)
            try:
                told = read_own_role(await self._wire.request(route), bot)
            except DiscordRefused as error:
                log.info("discord_unknown_roles", extra={"error": str(error)})
                told = ""
            _put(self._roles, guild, told)
        return self._roles[guild]

    async def place(self, conversation: Conversation) -> TaskChannel:
        """Return where to write in a conversation; its thread is made if needed. Unsent,
        RateLimited."""
        channel, thread = _number(conversation.channel), _number(conversation.thread or "0")
        if not conversation.thread:
            return TaskChannel(channel=channel)
        if self._channels.get(thread, Channel()).parent:
            return TaskChannel(channel=thread)
        if thread not in self._places:
            try:
                _put(self._places, thread, await self._find_or_make(channel, thread))
            except Ambiguous as error:
                raise Unsent(str(error)) from None  # the next look finds its state
        return self._places[thread]

    def order(self, conversation: Conversation) -> tuple[str, ...]:
        """Return where a message of the conversation may be, the likeliest first."""
        channel, thread = _number(conversation.channel), _number(conversation.thread or "0")
        if not conversation.thread:
            return (channel,)
        known = self._places.get(thread)
        return (channel, thread) if known and known.channel == channel else (thread, channel)

    async def _fetch_channel(self, number: str) -> Channel:
        try:
            route = Route("GET", "/channels/{channel_id}", channel_id=number)
            return read_channel(await self._wire.request(route)) or Channel()
        except DiscordRefused as error:  # deleted, or not accessible
            log.info("discord_unknown_channel", extra={"error": str(error)})
            return Channel()

    async def _find_or_make(self, channel: str, number: str) -> TaskChannel:
        path = "/channels/{channel_id}/messages/{message_id}"
        opening = Route("GET", path, channel_id=channel, message_id=number)
        try:
            message = await self._wire.request(opening)
        except DiscordRefused:  # a standalone thread, or its first message was deleted
            return await self._ask_for_channel(channel, number)
        if not isinstance(message, dict) or message.get("thread"):
            return TaskChannel(channel=number)
        return await self._make_thread(channel, number, _name(message))

    async def _ask_for_channel(self, channel: str, number: str) -> TaskChannel:
        try:
            await self._wire.request(Route("GET", "/channels/{channel_id}", channel_id=number))
        except DiscordRefused as error:
            return TaskChannel(channel=channel if error.code in UNKNOWN else number)
        return TaskChannel(channel=number)

    async def _make_thread(self, channel: str, number: str, name: str) -> TaskChannel:
        replies = TaskChannel(channel=channel, reply_to=number)
        if self._closed.get(channel, 0.0) > clock.monotonic():
            return replies
        path = "/channels/{channel_id}/messages/{message_id}/threads"
        route = Route("POST", path, channel_id=channel, message_id=number)
        try:
            await self._wire.request(route, json={"name": name})
        except RateLimited as error:
            if error.retry_after <= PATIENCE:
                raise
            return replies
        except DiscordRefused as error:
            if error.code in ANSWERED:
                return TaskChannel(channel=number)
            log.info("discord_no_thread", extra={"error": str(error)})
            if error.status == 403:
                _put(self._closed, channel, clock.monotonic() + CLOSED_FOR)
            return replies
        return TaskChannel(channel=number)


def _name(message: Json) -> str:
    """Return the first words of its subject."""
    content = message.get("content")
    words = MENTION.sub("", content).split() if isinstance(content, str) else []
    name = " ".join(words)
    if len(name) > NAME:
        cut = name[:NAME].rsplit(" ", 1)[0]
        name = f"{cut}…"
    return name or UNNAMED


def _number(text: str) -> str:
    if not text.isdecimal():
        raise Rejected(f"not a Discord id: {text!r}")
    return text


def _put(known: dict[str, T], key: str, value: T) -> None:
    if len(known) >= MAX_KNOWN:
        del known[next(iter(known))]
    known[key] = value
