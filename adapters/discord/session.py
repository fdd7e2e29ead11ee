"""The connection to Discord's gateway, and the session that outlives it.

discord.py speaks the protocol; its caches and objects are bypassed: events are forwarded as they
come. Discord has no acknowledgement of an event but the number from which a session is resumed.
Here that is the last one that was stored, also after a restart.
"""

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol
from urllib.parse import urlsplit

import aiohttp
import discord
import yarl
from discord.gateway import ReconnectWebSocket
from discord.http import Route

from adapters.discord.memory import DiscordMemory, GatewayPosition
from adapters.discord.parse import DiscordBot, Json, read_me
from adapters.discord.socket import DiscordSocket
from adapters.discord.transport import DiscordRefused, DiscordWire
from gateway import clock
from gateway.errors import DeliveryError, Rejected, TokenRefused, Unsent

log = logging.getLogger("adapters.discord")
logging.getLogger("discord").setLevel(logging.INFO)  # at DEBUG it logs each event whole

MIN_PAUSE, MAX_PAUSE = 0.5, 15.0
"""Seconds before a lost connection is opened again, doubled each time."""
GREETING = 60.0
"""Seconds that a connection may take to be made."""
MIN_LIFE = 5.0
"""Seconds under which a connection counts as failed: no storm of connections."""
MAX_RESUMES = 5
"""Connections that may end before a session goes on; then a new one begins."""
HOUR, MAX_BEGUN, SPARING = 3_600.0, 60, 90.0
"""Sessions that may begin in an hour without a pause: Discord allows 1,000 a day, and takes the
token from who begins more."""
OVER = (4007, 4009)
"""Close codes of a session that cannot go on: an odd number, too old."""
OFFICIAL = "discord.gg"
REFUSALS = {
    4004: "Discord refuses the bot token",
    4010: "Discord refuses the connection (sharding)",
    4011: "the bot is in too many servers for one connection",
    4012: "Discord no longer speaks this version of its protocol",
    4013: "Discord refuses the intents",
    4014: "switch on 'Message Content Intent' for the bot in the developer portal, or set "
    "GROUP_POLICY=mention",
}


class Listener(Protocol):
    """Receives events. `kinds`: the events that it wants."""

    @property
    def kinds(self) -> tuple[str, ...]: ...

    def contact(self) -> None:
        """Note that the connection is live."""

    def on_open(self, *, anew: bool) -> None:
        """A session goes on, or began `anew`, without what was said before it."""

    def on_event(self, number: int, kind: str, event: Json, size: int) -> None:
        """Receive an event, which came in `size` characters; its number is passed to `Session.keep`
        once it is stored."""

    async def wait_for_room(self) -> None:
        """Wait until more can be taken."""


class DiscordSession:
    """One bot's connection. `reads`: it wants all messages of servers, not only those addressed to
    the bot."""

    def __init__(
        self, wire: DiscordWire, gateway: str, memory: DiscordMemory, *, reads: bool
    ) -> None:
        self.me: DiscordBot | None = None
        self._wire = wire
        self._gateway = gateway
        self.memory = memory
        self._reads = reads
        self._id, self._url = "", gateway
        self._came = self._kept = 0
        self._live, self._fresh = False, True
        self._live_at, self._failed = 0.0, 0
        self._begun: deque[float] = deque(maxlen=MAX_BEGUN)
        self._socket: DiscordSocket | None = None

    @property
    def id(self) -> str:
        """The session in which each event has its number; "" before the first."""
        return self._id

    async def identify(self) -> None:
        """Learn who we are. Rejected if Discord refuses the token."""
        try:
            user = await self._wire.request(Route("GET", "/users/@me"))
        except TokenRefused as error:
            raise Rejected(str(error)) from None
        except DiscordRefused as error:
            raise Unsent(str(error)) from None
        self.me = read_me(user)
        if self.me is None:
            raise Unsent("Discord's answer names no bot")
        place = await self.memory.load(self.me.id)
        if place is not None:
            self.me, self._id, self._url = place.bot, place.session, self._choose_address(place.url)
            self._came = self._kept = place.kept

    async def listen(self, listener: Listener) -> None:
        """Connect again and again until cancelled, with pauses that double until a connection is
        good. Rejected if Discord refuses the bot for good."""
        pause = MIN_PAUSE
        self._wire.reopen()
        async with _client(self._wire, reads=self._reads) as client:
            client._connection.parsers = self._readers(listener)
            while True:
                self._live = False
                try:
                    await self._run_connection(client, listener)
                except ReconnectWebSocket as again:
                    self._end(forget=not again.resume or self._is_over())
                except discord.ConnectionClosed as closed:
                    if closed.code in REFUSALS:
                        raise Rejected(REFUSALS[closed.code]) from None
                    self._end(forget=True)
                except (OSError, aiohttp.ClientError, TimeoutError, DeliveryError) as error:
                    self._url = self._gateway  # a session can be resumed there too
                    log.warning("discord_unreachable", extra={"pause": pause, "error": repr(error)})
                except Exception:  # boundary: a malformed frame costs only a connection
                    log.exception("discord_odd_frame", extra={"pause": pause})
                    self._end(forget=False)
                finally:
                    await self._close()
                pause = MIN_PAUSE if self._has_lasted() else pause
                await clock.wait(max(pause, self._spare_sessions()))
                pause = min(2 * pause, MAX_PAUSE)

    def _has_lasted(self) -> bool:
        return self._live and clock.monotonic() - self._live_at >= MIN_LIFE

    def _spare_sessions(self) -> float:
        """Return how long not to begin another session, in seconds."""
        if self._id or len(self._begun) < MAX_BEGUN:
            return 0.0
        return SPARING if clock.monotonic() - self._begun[0] < HOUR else 0.0

    async def keep(self, number: int) -> None:
        """Note that all events up to `number` are stored, so that a session need not repeat
        them."""
        self._kept = max(self._kept, number)
        await self.save()

    async def save(self, *, now: bool = False) -> None:
        """Remember the place; without it a restart begins a new session."""
        if self.me is not None:
            place = GatewayPosition(bot=self.me, session=self._id, url=self._url, kept=self._kept)
            await self.memory.save(place, now=now)

    async def _run_connection(self, client: discord.Client, listener: Listener) -> None:
        first, self._fresh = self._fresh, False
        async with clock.limit(GREETING):
            if not self._id:
                self._begun.append(clock.monotonic())
            self._socket = socket = await DiscordSocket.from_client(
                client,
                initial=first,  # the SDK waits 5 seconds before another identify
                gateway=yarl.URL(self._url if self._id else self._gateway),
                session=self._id or None,
                sequence=self._came if self._id else None,
                resume=bool(self._id),
            )
        while True:
            await socket.poll_event()
            listener.contact()
            await listener.wait_for_room()

    def _readers(self, listener: Listener) -> dict[str, Callable[[Json], None]]:
        found: dict[str, Callable[[Json], None]] = {
            kind: partial(self._event, listener, kind) for kind in listener.kinds
        }
        found["READY"] = partial(self._ready, listener)
        found["RESUMED"] = partial(self._on_resumed, listener)
        return found

    def _ready(self, listener: Listener, event: Json) -> None:
        """A new session: numbers begin anew."""
        socket = self._socket
        if socket is None:
            return
        self.me = read_me(event.get("user"), event.get("application")) or self.me
        self._id, self._url = socket.session_id or "", self._choose_address(str(socket.gateway))
        self._came = self._kept = socket.sequence or 0
        self._begin()
        log.info("discord_connected")
        listener.on_open(anew=True)

    def _choose_address(self, told: str) -> str:
        """Return where to resume: as Discord `told`, unless that is a foreign address, for a resume
        sends the token."""
        address, own = urlsplit(told), urlsplit(self._gateway)
        official = address.scheme == "wss" and f".{address.hostname}".endswith(f".{OFFICIAL}")
        if official or (address.scheme, address.netloc) == (own.scheme, own.netloc):
            return told
        log.warning("discord_foreign_gateway", extra={"host": str(address.hostname)[:100]})
        return self._gateway

    def _begin(self) -> None:
        self._live, self._live_at, self._failed = True, clock.monotonic(), 0

    def _is_over(self) -> bool:
        """Return True if the connection was closed because its session cannot go on."""
        return self._socket is not None and self._socket.socket.close_code in OVER

    def _on_resumed(self, listener: Listener, _event: Json) -> None:
        self._begin()
        log.info("discord_resumed")
        listener.on_open(anew=False)

    def _event(self, listener: Listener, kind: str, event: Json) -> None:
        size = 0
        if self._socket is not None:
            self._came, size = self._socket.sequence or self._came, self._socket.size
        if isinstance(event, dict):
            listener.on_event(self._came, kind, event, size)

    def _end(self, *, forget: bool) -> None:
        self._failed += not self._live
        if forget or self._failed >= MAX_RESUMES:
            self._failed = 0
            self._id, self._url = "", self._gateway
        elif self._socket is not None and self._id:
            self._came = max(self._came, self._socket.sequence or 0)

    async def _close(self) -> None:
        """Close with a code after which the session can be resumed."""
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close(4000)
        await self._wire.drop_socket()


def _client(wire: DiscordWire, *, reads: bool) -> discord.Client:
    """The SDK's client with the least intents; of its own it only ever identifies."""
    discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False
    intents = discord.Intents.none()
    intents.guilds = intents.guild_messages = intents.dm_messages = True
    intents.message_content = reads
    client = discord.Client(intents=intents, max_messages=None)
    client.http = wire
    return client
