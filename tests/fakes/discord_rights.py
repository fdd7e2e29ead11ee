"""What a server on the Discord of the tests lets the bot do, and how people take it away."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.fakes.discord_server import DiscordServer

Json = dict[str, Any]
VIEW, SEND, IN_THREADS, MANAGE_THREADS = 1 << 10, 1 << 11, 1 << 38, 1 << 34
ASKED = "309237746752"
"""The permissions that the documentation asks for."""
OWN_ROLE, OTHER_ROLE = "4003", "4009"
HELD = ("send", "edit", "remove", "history", "look", "open", "type", "react", "unreact", "channel")
"""Routes of one channel."""
ARCHIVED = 50083
NOW = datetime(2026, 1, 1, tzinfo=UTC)
"""Whatever it is by the clock: silences of the tests end long before or after."""


class Barred(Exception):
    """Why a call is refused: its status, a message, Discord's code."""


@dataclass
class ServerRights:
    """The one server's state, and what people do to it. `member`: the bot is in it."""

    server: "DiscordServer"
    guild: str
    member: bool = True
    base: str = ASKED
    silenced: str | None = None
    overwrites: dict[str, list[Json]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    put_away: dict[str, bool] = field(default_factory=dict)
    """Threads that are archived, and whether they are locked too."""
    hidden: set[str] = field(default_factory=set)
    """Private threads that the bot is no member of."""

    def check(self, route: str, channel: str) -> None:
        """Barred if the bot may not call a channel's route."""
        if route not in HELD or channel.startswith("9000"):
            return
        parent = self.server.threads.get(channel, channel)
        if {channel, parent} & self.gone:
            raise Barred(404, "Unknown Channel", 10003)
        if not self.member or channel in self.hidden or not self.may(parent, VIEW):
            raise Barred(403, "Missing Access", 50001)
        if route == "send" and not self.may(parent, IN_THREADS if channel != parent else SEND):
            raise Barred(403, "Missing Permissions", 50013)
        if channel not in self.put_away:
            return
        if route == "send" and not self.put_away[channel]:
            del self.put_away[channel]
        elif route in ("send", "edit", "type", "react", "unreact"):
            raise Barred(400, "Thread is archived", ARCHIVED)

    def may(self, channel: str, bit: int) -> bool:
        """The bot has the permission; an overwrite takes it away, or gives it back by name."""
        if bit != VIEW and self.silenced and datetime.fromisoformat(self.silenced) > NOW:
            return False
        allowed = bool(int(self.base) & bit) or bit == MANAGE_THREADS
        for one in self.overwrites.get(channel, ()):
            allowed = (allowed and not int(one["deny"]) & bit) or bool(int(one["allow"]) & bit)
        return allowed

    def tell_roles(self) -> list[Json]:
        return [
            {"id": self.guild, "name": "@everyone", "permissions": "0"},
            {
                "id": OWN_ROLE, "name": "test_bot", "managed": True, "permissions": self.base,
                "tags": {"bot_id": self.server.user["id"]},
            },
            {"id": OTHER_ROLE, "name": "mods", "permissions": "8"},
        ]  # fmt: skip

    def tell_member(self) -> Json:
        if not self.member:
            raise Barred(404, "Unknown Guild", 10004)
        until = self.silenced
        return {
            "user": self.server.user,
            "roles": [OWN_ROLE],
            "communication_disabled_until": until,
        }

    def tell_channel(self, channel: str) -> Json:
        overwrites = self.overwrites.get(channel, [])
        return {
            "id": channel, "type": 0, "guild_id": self.guild, "parent_id": "6999",
            "permission_overwrites": overwrites,
        }  # fmt: skip

    def tell_channels(self) -> list[Json]:
        category = {"id": "6999", "type": 4, "guild_id": self.guild, "permission_overwrites": []}
        shown = [one for one in ("7100", "7101", *self.overwrites) if one not in self.gone]
        return [category, *(self.tell_channel(one) for one in dict.fromkeys(shown))]

    # ---- what people do ------------------------------------------------------------------

    async def put_out(self) -> None:
        """Somebody puts the bot out of the server."""
        self.member = False
        await self.server.gateway.dispatch("GUILD_DELETE", {"id": self.guild})

    async def take_back(self, channel: str) -> None:
        """The bot is in the server again, and may write in the channel."""
        self.member = True
        await self.server.gateway.dispatch("GUILD_CREATE", {"id": self.guild, "channels": []})
        await self.overwrite(channel)

    async def break_down(self) -> None:
        """The server is away for a while."""
        down = {"id": self.guild, "unavailable": True}
        await self.server.gateway.dispatch("GUILD_DELETE", down)

    async def delete(self, channel: str) -> None:
        """Delete a channel with its threads, or one thread."""
        self.gone.add(channel)
        where = {"id": channel, "guild_id": self.guild}
        if parent := self.server.threads.get(channel):
            told = where | {"parent_id": parent, "type": 11}
            await self.server.gateway.dispatch("THREAD_DELETE", told)
        else:
            await self.server.gateway.dispatch("CHANNEL_DELETE", where | {"type": 0})

    async def archive(self, thread: str, *, locked: bool = False) -> None:
        """Put a thread away, as Discord does by itself after a time; a moderator may lock it."""
        self.put_away[thread] = locked
        state = {"archived": True, "locked": locked, "auto_archive_duration": 1440}
        told = {"id": thread, "guild_id": self.guild, "type": 11, "thread_metadata": state}
        parent = {"parent_id": self.server.threads[thread]}
        await self.server.gateway.dispatch("THREAD_UPDATE", told | parent)

    async def overwrite(self, channel: str, *rules: tuple[str, int, int]) -> None:
        """Change what a channel allows: (role or person, allowed, denied)."""
        self.overwrites[channel] = [
            {"id": who, "type": 0, "allow": str(allow), "deny": str(deny)}
            for who, allow, deny in rules
        ]
        await self.server.gateway.dispatch("CHANNEL_UPDATE", self.tell_channel(channel))

    async def change_role(self, role: str, permissions: str) -> None:
        """Change what a role may."""
        if role == OWN_ROLE:
            self.base = permissions
        told = {"guild_id": self.guild, "role": {"id": role, "permissions": permissions}}
        await self.server.gateway.dispatch("GUILD_ROLE_UPDATE", told)

    async def silence(self, until: str) -> None:
        """A moderator silences the bot until then."""
        self.silenced = until
        told = {"guild_id": self.guild} | self.tell_member()
        await self.server.gateway.dispatch("GUILD_MEMBER_UPDATE", told)

    async def dismiss(self, thread: str) -> None:
        """Take the bot out of a private thread."""
        self.hidden.add(thread)
        told = {
            "id": thread,
            "guild_id": self.guild,
            "removed_member_ids": [self.server.user["id"]],
        }
        await self.server.gateway.dispatch("THREAD_MEMBERS_UPDATE", told)
