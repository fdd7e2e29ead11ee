"""Detects channels of servers in which the bot may no longer write, by the servers' events.

An event only tells that something changed, also when a restart gets it again; whether the bot may
still write is asked of Discord each time, so nothing has to be remembered.
"""

import logging
from collections.abc import Mapping, Sequence

from discord import Permissions
from discord.http import Route
from discord.utils import parse_time
from msgspec import Struct

from adapters.discord.parse import DiscordBot, Json, number_of
from adapters.discord.transport import DiscordRefused, DiscordWire
from adapters.incoming import read_string
from gateway import clock
from gateway.messages import ChatLost, Conversation

log = logging.getLogger("adapters.discord")

KINDS = (
    "GUILD_DELETE",
    "CHANNEL_DELETE",
    "CHANNEL_UPDATE",
    "THREAD_DELETE",
    "THREAD_UPDATE",
    "THREAD_MEMBERS_UPDATE",
    "GUILD_ROLE_UPDATE",
    "GUILD_ROLE_DELETE",
    "GUILD_MEMBER_UPDATE",
)
"""Events that may tell it. Of members Discord sends only the bot itself."""
CATEGORY = 4
READING = Permissions(view_channel=True, read_message_history=True).value
"""The permissions left to a member in a timeout."""


class BotRights(Struct, frozen=True, kw_only=True):
    """The bot's permissions in a server, before its channels' overwrites."""

    guild: str
    bot: str
    base: int
    roles: frozenset[str]
    silenced: bool = False

    def compute(self, channel: Json) -> Permissions:
        """Return the bot's permissions in a channel, in the order that Discord documents."""
        rights = Permissions(self.base)
        if rights.administrator:
            return Permissions.all()
        known = {number_of(one, "id"): one for one in _maps(channel.get("permission_overwrites"))}
        mine = [known[role] for role in self.roles - {self.guild} if role in known]
        for layer in ([known.get(self.guild, {})], mine, [known.get(self.bot, {})]):
            allow = deny = 0
            for one in layer:
                allow, deny = allow | read_bits(one, "allow"), deny | read_bits(one, "deny")
            rights.handle_overwrite(allow, deny)
        if self.silenced:
            rights.value &= READING
        return rights


class LostChats:
    """Tells which chats an event took away."""

    def __init__(self, wire: DiscordWire) -> None:
        self._wire = wire

    async def find(self, kind: str, event: Json, me: DiscordBot, name: str) -> Sequence[ChatLost]:
        """The chats that are lost since `event`, which is named `name`. Unsent, RateLimited."""
        guild, number = number_of(event, "guild_id"), number_of(event, "id")
        match kind:
            case "GUILD_DELETE":  # it may only be temporarily unavailable
                gone = "" if event.get("unavailable") is True else number
                return [make_chat_lost(me, gone, "", "", name)] if gone else ()
            case "CHANNEL_DELETE" if guild and number:
                return [make_chat_lost(me, guild, number, "", name)]
            case "THREAD_DELETE" if guild and number:
                return [make_chat_lost(me, guild, number_of(event, "parent_id"), number, name)]
            case "CHANNEL_UPDATE" if guild and number and event.get("type") != CATEGORY:
                lost = not await self._may_write(guild, number, me)
                return [make_chat_lost(me, guild, number, "", name)] if lost else ()
            case "THREAD_UPDATE" if guild and number:
                lost = await self._is_locked(guild, event, me)
                parent = number_of(event, "parent_id")
                return [make_chat_lost(me, guild, parent, number, name)] if lost else ()
            case "THREAD_MEMBERS_UPDATE" if guild and number:
                removed = event.get("removed_member_ids")
                mine = isinstance(removed, list) and me.id in removed
                lost = mine and await self._fetch_channel(number) is None
                return [make_chat_lost(me, guild, "", number, name)] if lost else ()
            case "GUILD_ROLE_UPDATE" | "GUILD_ROLE_DELETE" | "GUILD_MEMBER_UPDATE" if guild:
                return await self._find_denied(kind, event, guild, me, name)
        return ()

    async def _may_write(self, guild: str, number: str, me: DiscordBot) -> bool:
        channel = await self._fetch_channel(number)
        if channel is None:
            return False
        rights = await self._read_rights(guild, me)
        return rights is None or may_write(rights.compute(channel))

    async def _is_locked(self, guild: str, thread: Json, me: DiscordBot) -> bool:
        """A thread that was put away is opened again by the next message, unless it is locked."""
        state = _map(thread.get("thread_metadata"))
        if state.get("archived") is not True or state.get("locked") is not True:
            return False
        parent = await self._fetch_channel(number_of(thread, "parent_id"))
        rights = await self._read_rights(guild, me)
        may_open = parent is not None and (not rights or rights.compute(parent).manage_threads)
        return not may_open

    async def _find_denied(
        self, kind: str, event: Json, guild: str, me: DiscordBot, name: str
    ) -> Sequence[ChatLost]:
        """Return the channels of a server that roles, or the bot's own state, close to it."""
        rights = await self._read_rights(guild, me)
        role = number_of(_map(event.get("role")), "id")
        if rights is None or (kind == "GUILD_ROLE_UPDATE" and role not in rights.roles):
            return ()
        told = await self._ask(Route("GET", "/guilds/{guild_id}/channels", guild_id=guild))
        channels = [one for one in _maps(told) if one.get("type") != CATEGORY]
        denied = [one for one in channels if not may_write(rights.compute(one))]
        if denied and len(denied) == len(channels):
            return [make_chat_lost(me, guild, "", "", name)]
        return [make_chat_lost(me, guild, number_of(one, "id"), "", name) for one in denied]

    async def _fetch_channel(self, number: str) -> Json | None:
        """Return the channel, None if it is gone or hidden from the bot."""
        if not number:
            return None
        told = await self._ask(Route("GET", "/channels/{channel_id}", channel_id=number))
        return told if isinstance(told, dict) else None

    async def _read_rights(self, guild: str, me: DiscordBot) -> BotRights | None:
        """Return the permissions, None if the server itself is not visible: that has its own
        event."""
        path = "/guilds/{guild_id}/members/{user_id}"
        member = await self._ask(Route("GET", path, guild_id=guild, user_id=me.id))
        roles = await self._ask(Route("GET", "/guilds/{guild_id}/roles", guild_id=guild))
        if not isinstance(member, dict) or not isinstance(roles, list):
            return None
        held = member.get("roles")
        own = (one for one in (held if isinstance(held, list) else ()) if isinstance(one, str))
        mine = frozenset((guild, *own))
        base = 0
        for one in _maps(roles):
            if number_of(one, "id") in mine:
                base |= read_bits(one, "permissions")
        silenced = is_silenced(member)
        return BotRights(guild=guild, bot=me.id, base=base, roles=mine, silenced=silenced)

    async def _ask(self, route: Route) -> object:
        """Return the answer, None if the object is gone, or hidden from the bot. Unsent,
        RateLimited, Ambiguous."""
        try:
            return await self._wire.request(route)
        except DiscordRefused as error:
            log.info("discord_rights_unknown", extra={"error": str(error)})
            return None


def make_chat_lost(me: DiscordBot, guild: str, channel: str, thread: str, name: str) -> ChatLost:
    """Make the inbound for a lost thread, channel or, without both, server."""
    where = Conversation(
        platform="discord", account=me.id, workspace=guild, channel=channel, thread=thread
    )
    return ChatLost(conversation=where, event=name)


def may_write(rights: Permissions) -> bool:
    """Return True if the bot may write in the channel or in its threads."""
    return rights.view_channel and (rights.send_messages or rights.send_messages_in_threads)


def is_silenced(member: Json) -> bool:
    """A moderator took the bot's words away for a time."""
    try:
        until = parse_time(read_string(member.get("communication_disabled_until")) or None)
    except ValueError:
        return False
    return until is not None and until.timestamp() > clock.now()


def read_bits(within: Mapping[str, object], key: str) -> int:
    """A set of permissions, which Discord writes as a decimal text."""
    text = read_string(within.get(key))
    return int(text) if text.isdecimal() and len(text) <= 20 else 0


def _map(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _maps(value: object) -> list[Json]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
