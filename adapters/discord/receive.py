"""Receiving from Discord: the gateway's connection and what came by it. Owns the session.

discord.py speaks the protocol; its caches and its objects are left out: events are read as they
come. Each one waits in a line until it is kept. Discord has no acknowledgement of an event but the
number from which a session is resumed; here that is the last one kept, also after a restart.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import aiohttp
import discord
import yarl
from discord.gateway import DiscordWebSocket, ReconnectWebSocket
from discord.http import Route

from adapters.discord import parse
from adapters.discord.components import EPHEMERAL, NO_PINGS, WRITES, modal, word
from adapters.discord.resume import Memory, Place
from adapters.discord.transport import Refused, Wire
from gateway import clock
from gateway.errors import DeliveryError, Rejected, Unsent
from gateway.messages import Inbound, MessageReceived, Sender
from gateway.ports import Accept
from gateway.texts import say

log = logging.getLogger("adapters.discord")

LEAST_PAUSE, MOST_PAUSE = 0.5, 15.0
BATCH, MOST_WAITING, MOST_KNOWN = 100, 2_000, 5_000
GREETING = 60.0
"""Seconds that a connection may take to be made."""
REFUSALS = {
    4004: "Discord refuses the bot token",
    4010: "Discord refuses the connection (sharding)",
    4011: "the bot is in too many servers for one connection",
    4012: "Discord no longer speaks this version of its protocol",
    4013: "Discord refuses the intents",
    4014: "switch on 'Message Content Intent' for the bot in the developer portal, or set "
    "GROUP_POLICY=mention",
}
EVENTS = (
    "MESSAGE_CREATE",
    "MESSAGE_UPDATE",
    "MESSAGE_DELETE",
    "MESSAGE_DELETE_BULK",
    "INTERACTION_CREATE",
)
DEFERRED, ANSWERED = 6, 4


class Commands(Protocol):
    """What the menu of commands is made of."""

    def rows(self, language: str, *, admin: bool) -> Sequence[tuple[str, str]]:
        """(name, description) of each command."""


class Receiver:
    """One bot's incoming side. `contact` is called at each proof that inbound is live; `reads`:
    all that is said in servers is wanted, not only what addresses the bot."""

    def __init__(
        self,
        wire: Wire,
        contact: Callable[[], None],
        memory: Memory,
        commands: Commands | None,
        *,
        reads: bool,
    ) -> None:
        self._wire = wire
        self._contact = contact
        self._memory = memory
        self._commands = commands
        self._client = _client(wire, reads=reads)
        self._client._connection.parsers = {
            "READY": self._ready,
            "RESUMED": self._resumed,
            **{kind: partial(self._came, kind) for kind in EVENTS},
        }
        self._socket: DiscordWebSocket | None = None
        self._me: parse.Me | None = None
        self._line: deque[tuple[int, str, parse.Json]] = deque()
        self._more, self._room = asyncio.Event(), asyncio.Event()
        self._parents: dict[str, str] = {}
        self._senders: dict[str, Sender] = {}
        self._group: asyncio.TaskGroup | None = None
        self._live = self._opened = False

    async def run(self, accept: Accept) -> None:
        """Receive until cancelled. Rejected if Discord refuses the bot for good."""
        await self._insist(self._identify)
        async with self._client:
            try:
                await self._both(accept)
            finally:
                if self._socket is not None:
                    await self._socket.close(4000)  # a session closed so can be resumed
                await self._memory.save(self._me)

    async def _both(self, accept: Accept) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                group.create_task(self._keep(accept))
                group.create_task(self._listen())
        except BaseExceptionGroup as errors:
            refused = errors.subgroup(Rejected)
            raise (_first(refused) if refused is not None else errors) from None

    # ---- the connection ------------------------------------------------------------------

    async def _identify(self) -> None:
        try:
            user = await self._wire.request(Route("GET", "/users/@me"))
        except Refused as error:
            if error.status == 401:
                raise Rejected("Discord refuses the bot token (401)") from None
            raise Unsent(str(error)) from None
        self._me = parse.read_me(user)
        if self._me is None:
            raise Unsent("Discord's answer names no bot")
        self._me = await self._memory.load(self._me)

    async def _listen(self) -> None:
        """Connect again and again, after pauses that double until a connection is good."""
        pause = LEAST_PAUSE
        while True:
            self._live = False
            try:
                await self._connected()
            except ReconnectWebSocket as again:
                if not again.resume:
                    self._memory.forget()
            except discord.ConnectionClosed as closed:
                if closed.code in REFUSALS:
                    log.error("discord_refused", extra={"code": closed.code})
                    raise Rejected(REFUSALS[closed.code]) from None
                self._memory.forget()
            except (OSError, aiohttp.ClientError, TimeoutError, DeliveryError) as error:
                log.warning("discord_unreachable", extra={"pause": pause, "error": repr(error)})
            pause = LEAST_PAUSE if self._live else pause
            await clock.wait(pause)
            pause = min(2 * pause, MOST_PAUSE)

    async def _connected(self) -> None:
        place = self._memory.place
        again = {"resume": True, "session": place.session, "sequence": place.newest}
        self._socket = None
        async with clock.limit(GREETING):
            self._socket = await DiscordWebSocket.from_client(
                self._client,
                gateway=yarl.URL(place.url),
                **(again if place.session else {}),  # type: ignore[arg-type]  # each as it is
            )
        while True:
            await self._socket.poll_event()
            self._contact()
            while len(self._line) >= MOST_WAITING:  # a store that is away: Discord keeps the rest
                self._room.clear()
                await self._room.wait()

    def _ready(self, event: parse.Json) -> None:
        """A new session."""
        socket = self._current()
        self._me = parse.read_me(event.get("user"), event.get("application")) or self._me
        sequence = socket.sequence or 0
        session = socket.session_id or ""
        self._memory.place = Place(
            session=session, url=str(socket.gateway), kept=sequence, newest=sequence
        )
        log.info("discord_connected")
        self._opening()

    def _resumed(self, _event: parse.Json) -> None:
        log.info("discord_resumed")
        self._opening()

    def _current(self) -> DiscordWebSocket:
        """The SDK makes its connection known to the client before it is greeted."""
        socket = self._socket or self._client.ws
        if socket is None:
            raise Unsent("no connection")
        return socket

    def _opening(self) -> None:
        self._live = True
        if not self._opened and self._group is not None:
            self._opened = True
            self._group.create_task(self._offer())

    # ---- what comes ----------------------------------------------------------------------

    def _came(self, kind: str, event: parse.Json) -> None:
        sequence = self._memory.came(self._current().sequence or 0)
        if kind == "INTERACTION_CREATE" and self._group is not None:
            self._group.create_task(self._answer(event))
        self._line.append((sequence, kind, event))
        self._more.set()

    async def _keep(self, accept: Accept) -> None:
        """Hand over what came, in order; what is not kept is tried again."""
        while True:
            while not self._line:
                self._more.clear()
                await self._more.wait()
            taken = [self._line[n] for n in range(min(BATCH, len(self._line)))]
            await self._insist(partial(self._hand_over, taken, accept))
            for _ in taken:
                self._line.popleft()
            self._room.set()
            self._memory.keep(taken[-1][0])
            await self._memory.save_now_and_then(self._me)

    async def _hand_over(
        self, taken: Sequence[tuple[int, str, parse.Json]], accept: Accept
    ) -> None:
        batch: list[Inbound] = []
        for _, kind, event in taken:
            parent = await self._parent(event)
            try:
                batch += self._parsed(kind, event, parent)
            except Exception:  # the border: one poison event must not hold up the others
                log.exception("discord_poison_event", extra={"kind": kind})
        if batch:
            await accept(batch)

    def _parsed(self, kind: str, event: parse.Json, parent: str) -> Sequence[Inbound]:
        if self._me is None:
            return ()
        if kind.startswith("MESSAGE_DELETE"):
            return parse.parse_deleted(event, self._me, parent, self._senders)
        inbound = parse.parse(kind, event, self._me, parent)
        if isinstance(inbound, MessageReceived):
            self._senders[inbound.message] = inbound.sender
            if len(self._senders) > MOST_KNOWN:
                del self._senders[next(iter(self._senders))]
        return () if inbound is None else (inbound,)

    async def _parent(self, event: parse.Json) -> str:
        """The channel of the thread in which it happened, "" elsewhere: asked for once."""
        channel = parse.channel_of(event)
        if not channel:
            return ""
        if channel not in self._parents:
            told = parse.thread_of(event.get("channel"))
            if len(self._parents) >= MOST_KNOWN:
                self._parents.clear()
            self._parents[channel] = await self._asked(channel) if told is None else told
        return self._parents[channel]

    async def _asked(self, channel: str) -> str:
        try:
            route = Route("GET", "/channels/{channel_id}", channel_id=channel)
            return parse.thread_of(await self._wire.request(route)) or ""
        except Refused as error:  # it is gone, or may not be seen
            log.info("discord_unknown_channel", extra={"error": str(error)})
            return ""

    async def _insist(self, step: Callable[[], "asyncio.Future[None] | object"]) -> None:
        """Make `step` again until it ends well, after pauses that double."""
        pause = LEAST_PAUSE
        while True:
            try:
                await step()  # type: ignore[misc]
                return
            except Rejected:
                raise
            except DeliveryError as error:
                log.warning("discord_unreachable", extra={"pause": pause, "error": repr(error)})
            except Exception:  # the border: whatever accept raises, the events stay
                log.exception("discord_not_accepted", extra={"pause": pause})
            await clock.wait(pause)
            pause = min(2 * pause, MOST_PAUSE)
