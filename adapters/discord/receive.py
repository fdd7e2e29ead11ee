"""Receives from Discord: a queue of events, each removed only when it is stored.

Interactions are acknowledged at once: Discord waits 3 seconds for it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from discord.http import Route
from msgspec.structs import replace

from adapters.discord import lost_chats, menu, parse
from adapters.discord.held import Event, HeldEvents
from adapters.discord.lost_chats import LostChats, make_chat_lost
from adapters.discord.memory import LastSeen, MessageOrigin
from adapters.discord.menu import DiscordCommands
from adapters.discord.session import DiscordSession
from adapters.discord.threads import Threads
from adapters.discord.transport import DiscordClosed, DiscordRefused, DiscordWire
from adapters.http_errors import unwrap_refusal
from gateway import clock
from gateway.errors import DeliveryError, Rejected, StoreFailed, Unsent
from gateway.messages import CommandGiven, Inbound, MessageDeleted, MessageEdited, MessageReceived
from gateway.ports import Accept

log = logging.getLogger("adapters.discord")

MIN_PAUSE, MAX_PAUSE = 0.5, 15.0
"""Seconds before a failed step is repeated, doubled each time."""
MAX_SIZE = 16 << 20
TYPING_LIMIT = 2.0
"""Seconds for the choices of who types a command: Discord waits 3."""
BATCH, MAX_WAITING, MAX_ANSWERING = 100, 2_000, 200
GAP, PAGE = 86_400.0, 100
"""Seconds back from now, and messages of a channel, that are read after a gap at most."""
ASKING, READING = 2.0, 5.0
"""Seconds for which all wait for what an event needs to be known, and for a channel's messages;
after that, the others go on."""
FAILURES, HURRY = 2, 0.1
"""Look-ups that fail before the others are given that many seconds."""
LATE = 900.0
"""Seconds for which a channel that could not be read after a gap is tried."""


class DiscordReceiver:
    """One bot's incoming side. `contact` is called at each proof that it is live."""

    kinds = (
        "MESSAGE_CREATE",
        "MESSAGE_UPDATE",
        "MESSAGE_DELETE",
        "MESSAGE_DELETE_BULK",
        "INTERACTION_CREATE",
        *lost_chats.KINDS,
    )

    def __init__(
        self,
        wire: DiscordWire,
        session: DiscordSession,
        threads: Threads,
        contact: Callable[[], None],
        commands: DiscordCommands | None,
    ) -> None:
        self.contact = contact
        self._wire = wire
        self._session = session
        self._memory = session.memory
        self._threads = threads
        self._lost = LostChats(wire)
        self._commands = commands
        self._offered = False
        self._gap = False
        self._line: deque[Event] = deque()
        self._size = 0
        self._held = HeldEvents()
        self._unread: set[str] = set()
        """Channels that are still to be read after a gap."""
        self._more, self._less = asyncio.Event(), asyncio.Event()
        self._group: asyncio.TaskGroup | None = None
        self._echoes: dict[int, asyncio.Task[bool]] = {}
        """Commands on their way into the store, and the echo that their person is shown."""
        self._answering: dict[str, asyncio.Task[bool]] = {}
        """Answers to interactions that are on their way, by token."""

    async def run(self, accept: Accept) -> None:
        """Receive until cancelled. Rejected if Discord refuses the bot for good."""
        await self._insist(self._session.identify)
        try:
            with unwrap_refusal():
                async with asyncio.TaskGroup() as group:
                    self._group = group
                    self._resume_held(accept)
                    group.create_task(self._keep(accept))
                    group.create_task(self._session.listen(self))
        finally:
            await self._session.save(now=True)

    # ---- as the session's listener -------------------------------------------------------

    def on_open(self, *, anew: bool) -> None:
        """Send the menu of commands, once; after a gap, read the missed messages."""
        if anew:
            self._gap = True
            self._more.set()
        if self._commands is not None and self._group is not None and not self._offered:
            self._offered = True
            self._group.create_task(self._offer(self._commands))

    def on_event(self, number: int, kind: str, event: parse.Json, size: int) -> None:
        """Queue the event; answer an interaction besides."""
        if kind == "INTERACTION_CREATE":
            self._memory.remember_language(event)
        if kind == "INTERACTION_CREATE" and self._group is not None and self._has_answers_left():
            answered = self._group.create_task(self._acknowledge(event))
            token = str(event.get("token"))
            self._answering[token] = answered
            answered.add_done_callback(lambda _: self._answering.pop(token, None))
            if event.get("type") == parse.COMMAND_GIVEN:
                self._echoes[number] = answered
        self._line.append(Event(number, kind, event, self._session.id, size))
        self._size += size
        self._more.set()

    def _has_answers_left(self) -> bool:
        """Return False while too many answers are on their way: they come too late anyway."""
        if len(self._answering) < MAX_ANSWERING:
            return True
        log.debug("discord_interaction_not_answered")
        return False

    async def wait_acknowledged(self, token: str) -> None:
        """Wait until the interaction with this token has its answer: Discord takes no further word
        before that."""
        if (answering := self._answering.get(token)) is not None:
            await asyncio.wait((answering,))

    async def wait_for_room(self) -> None:
        """Wait for room: while the store is unavailable, Discord keeps what exceeds MAX_WAITING
        events or MAX_SIZE characters."""
        while len(self._line) >= MAX_WAITING or self._size >= MAX_SIZE:
            self._less.clear()
            await self._less.wait()

    # ---- keeping -------------------------------------------------------------------------

    async def _keep(self, accept: Accept) -> None:
        """Hand over events in order; what could not be stored is retried."""
        while True:
            while not self._line and not self._gap:
                self._more.clear()
                await self._more.wait()
            if self._gap:
                self._gap = False
                await self._read_back(accept)
                continue
            taken = [self._line[n] for n in range(min(BATCH, len(self._line)))]
            await self._hand_over(taken, accept)
            for one in taken:
                self._line.popleft()
                self._size -= one.size
            self._less.set()
            last = taken[-1]
            await self._session.keep(self._held.find_last_stored(last.session, last.number))

    async def _hand_over(self, taken: Sequence[Event], accept: Accept) -> None:
        """Hand over events, except those of channels of which something is not known yet."""
        batch: list[Inbound] = []
        read: list[Event] = []
        failures = 0
        for one in taken:
            if self._held.holds(one.place):
                self._held.add(one)
                continue
            try:
                async with clock.limit(ASKING if failures < FAILURES else HURRY):
                    batch += await self._read_event(one)
            except (DeliveryError, TimeoutError) as error:
                failures += 1
                self._hold(one, accept, error)
            else:
                read.append(one)
        await self._store(batch, read, accept)

    async def _store(self, batch: list[Inbound], read: Sequence[Event], accept: Accept) -> None:
        if batch:
            await self._insist(partial(accept, batch))
        for one in read:
            if one.kind == "MESSAGE_CREATE" and one.data.get("channel_id") not in self._unread:
                self._memory.note_read(one.data)
            echo = self._echoes.pop(one.number, None)
            if echo is not None and self._group is not None:
                self._group.create_task(self._remove_echo(echo, one.data))

    async def _read_event(self, one: Event) -> Sequence[Inbound]:
        """Parse an event, with what has to be looked up for it. DeliveryError."""
        if one.kind in lost_chats.KINDS:
            return await self._find_lost(one)
        channel = await self._threads.channel(one.data)
        return self._parse_safely(one.kind, await self._name_bot(one.data), channel)

    def _parse_safely(
        self, kind: str, event: parse.Json, channel: parse.Channel
    ) -> Sequence[Inbound]:
        try:
            return self._parse(kind, event, channel)
        except Exception:  # boundary: one bad event must not block the others
            log.exception("discord_poison_event", extra={"kind": kind})
            return ()

    # ---- what waits for a look-up --------------------------------------------------------

    def _resume_held(self, accept: Accept) -> None:
        """Go on with what an earlier run left waiting: its tasks have ended."""
        self._gap = self._gap or bool(self._unread)
        for place in self._held.list_places():
            self._take_later(place, accept)

    def _hold(self, one: Event, accept: Accept, error: Exception) -> None:
        log.warning("discord_event_waits", extra={"kind": one.kind, "error": repr(error)})
        self._held.add(one)
        self._take_later(one.place, accept)

    def _take_later(self, place: str, accept: Accept) -> None:
        if self._group is not None:
            self._group.create_task(self._take_held(place, accept))

    async def _take_held(self, place: str, accept: Accept) -> None:
        """Hand over what waits for the look-ups of a place, once they succeed or take too long."""
        pause = MIN_PAUSE
        while self._held.holds(place):
            await clock.wait(pause)
            pause = min(2 * pause, MAX_PAUSE)
            taken = self._held.list_events(place)[:BATCH]
            batch: list[Inbound] = []
            try:
                for one in taken:
                    batch += await self._read_event(one)
            except DeliveryError as error:
                if self._held.may_wait(place):
                    continue
                log.error("discord_not_looked_up", extra={"error": repr(error)})  # noqa: TRY400
                batch = [found for one in taken for found in self._guess(one)]
            await self._store(batch, taken, accept)
            self._held.remove(place, len(taken))
            pause = 0.0 if self._held.holds(place) else pause

    def _guess(self, one: Event) -> Sequence[Inbound]:
        """Parse an event without look-ups; whether a chat is lost shows at the next message."""
        if one.kind in lost_chats.KINDS:
            return ()
        return self._parse_safely(one.kind, one.data, parse.Channel())

    async def _find_lost(self, one: Event) -> Sequence[Inbound]:
        me = self._session.me
        try:
            name = f"{one.session}:{one.number}"
            return await self._lost.find(one.kind, one.data, me, name) if me else ()
        except (DeliveryError, TimeoutError):
            raise
        except Exception:  # boundary: one bad event must not block the others
            log.exception("discord_poison_event", extra={"kind": one.kind})
            return ()

    async def _name_bot(self, event: parse.Json) -> parse.Json:
        """The event, in which a mention of the bot's own role is one of the bot: clients offer both
        under its name."""
        named, me = event.get("mention_roles"), self._session.me
        guild = parse.guild_of(event)
        if me is None or not guild or not isinstance(named, list) or not named:
            return event
        role = await self._threads.find_own_role(guild, me.id)
        return parse.mention_bot(event, me, role) if role and role in named else event

    def _parse(self, kind: str, event: parse.Json, channel: parse.Channel) -> Sequence[Inbound]:
        me = self._session.me
        if me is None:
            return ()
        if kind.startswith("MESSAGE_DELETE"):
            return read_deletions(event, self._memory.said)
        inbound = self._add_language(self._find_task(parse.parse(kind, event, me, channel)))
        said = inbound.said if isinstance(inbound, MessageEdited) else inbound
        if isinstance(said, MessageReceived):
            self._memory.remember_message(said)
        return () if inbound is None else (inbound,)

    def _find_task(self, inbound: Inbound | None) -> Inbound | None:
        """An edit belongs to the task of its message, also if that names the bot no more."""
        known = (
            self._memory.said.get(inbound.message) if isinstance(inbound, MessageEdited) else None
        )
        return replace(inbound, conversation=known.conversation) if inbound and known else inbound

    def _add_language(self, inbound: Inbound | None) -> Inbound | None:
        """Add the author's language, which a message itself does not tell."""
        if not isinstance(inbound, MessageReceived | CommandGiven) or inbound.sender.language:
            return inbound
        language = self._memory.language(inbound.sender.id)
        return replace(inbound, sender=replace(inbound.sender, language=language))

    # ---- after a gap ---------------------------------------------------------------------

    async def _read_back(self, accept: Accept) -> None:
        """Read what was said in active channels while nobody listened; known messages are
        deduplicated by the store. Channels that cannot be read now are read later."""
        late: list[tuple[str, LastSeen]] = []
        for channel, seen in self._memory.channels():
            if len(late) >= FAILURES or not await self._read_channel(channel, seen, accept):
                late.append((channel, seen))
        self._unread = {channel for channel, _ in late}
        if late and self._group is not None:
            self._group.create_task(self._read_late(late, accept))

    async def _read_late(self, late: list[tuple[str, LastSeen]], accept: Accept) -> None:
        pause, until = MIN_PAUSE, clock.monotonic() + LATE
        while late and clock.monotonic() < until:
            await clock.wait(pause)
            pause = min(2 * pause, MAX_PAUSE)
            for one in list(late):
                if await self._read_channel(*one, accept):
                    late.remove(one)
                    self._unread.discard(one[0])
        for channel, _ in late:
            log.error("discord_gap_not_read", extra={"channel": channel})
            self._unread.discard(channel)

    async def _read_channel(self, channel: str, seen: LastSeen, accept: Accept) -> bool:
        """Read a channel's messages; False if Discord does not give them at present."""
        said: list[parse.Json] = []
        lost: list[Inbound] = []
        try:
            async with clock.limit(READING):
                await self._read(channel, seen, said, lost)
        except (DeliveryError, TimeoutError) as error:
            log.warning("discord_gap_waits", extra={"channel": channel, "error": repr(error)})
            return False
        except Exception:  # boundary: one bad channel must not block the others
            log.exception("discord_poison_channel", extra={"channel": channel})
            return True
        if lost:
            await self._insist(partial(accept, lost))
        if said:
            log.info("discord_read_back", extra={"channel": channel, "messages": len(said)})
            await self._hand_over([Event(0, "MESSAGE_CREATE", one) for one in said], accept)
        return True

    async def _read(
        self, channel: str, seen: LastSeen, said: list[parse.Json], lost: list[Inbound]
    ) -> None:
        """Read messages after the last one seen, oldest first. Channels of a server that the bot
        can no longer see are `lost`: as a channel, and as a thread of an unknown one."""
        after = max(int(seen.message), parse.moment(clock.now() - GAP))
        query = f"limit={PAGE}&after={after}"
        route = Route("GET", "/channels/{channel_id}/messages", channel_id=channel)
        try:
            told = await self._wire.request(route, query=query)
        except DiscordRefused as error:  # it was deleted, or is no longer readable
            log.info("discord_not_read_back", extra={"error": str(error)})
            me, name = self._session.me, f"{self._session.id}:gap"
            if isinstance(error, DiscordClosed) and seen.guild and me is not None:
                places = ((channel, ""), ("", channel))
                lost[:] = [make_chat_lost(me, seen.guild, *place, name) for place in places]
            return
        where = {"channel_id": channel} | ({"guild_id": seen.guild} if seen.guild else {})
        found = [
            one | where for one in (told if isinstance(told, list) else ()) if isinstance(one, dict)
        ]
        said[:] = sorted(found, key=lambda one: int(parse.number_of(one, "id") or "0"))

    async def _insist(self, step: Callable[[], Awaitable[None]]) -> None:
        """Make `step` again until it ends well, after pauses that double."""
        pause = MIN_PAUSE
        while True:
            try:
                return await step()
            except Rejected:
                raise
            except DeliveryError as error:
                log.warning("discord_unreachable", extra={"pause": pause, "error": repr(error)})
            except StoreFailed as error:
                log.error("discord_not_stored", extra={"pause": pause, "why": str(error)})  # noqa: TRY400
            except Exception:  # boundary: whatever accept raises, the events are kept
                log.exception("discord_not_accepted", extra={"pause": pause})
            await clock.wait(pause)
            pause = min(2 * pause, MAX_PAUSE)

    # ---- interactions --------------------------------------------------------------------

    async def _acknowledge(self, event: parse.Json) -> bool:
        """Give an interaction its one answer; False if that failed. A replayed one has it
        already."""
        typing = event.get("type") == parse.TYPING
        answer = await self._complete(event) if typing else menu.answer(event)
        number, token = event.get("id"), event.get("token")
        if answer is None or not isinstance(number, str) or not isinstance(token, str):
            return False
        path = "/interactions/{webhook_id}/{webhook_token}/callback"
        route = Route("POST", path, webhook_id=number, webhook_token=token)
        try:
            try:
                await self._wire.request(route, json=answer)
            except Unsent:
                await self._wire.request(route, json=answer)
        except DeliveryError as error:
            log.info("discord_interaction_unanswered", extra={"error": str(error)})
            return False
        return True

    async def _remove_echo(self, echo: asyncio.Task[bool], event: parse.Json) -> None:
        """Remove the command's echo, as its outcome is shown."""
        application, token = event.get("application_id"), event.get("token")
        if not await echo or not isinstance(application, str):
            return
        path = "/webhooks/{webhook_id}/{webhook_token}/messages/@original"
        route = Route("DELETE", path, webhook_id=application, webhook_token=token)
        try:
            await self._wire.request(route)
        except DeliveryError as error:  # it is kept, visible only to its user
            log.info("discord_echo_stays", extra={"error": str(error)})

    async def _complete(self, event: parse.Json) -> dict[str, object]:
        """Complete a command that somebody types; {} if that takes too long."""
        found: Sequence[tuple[str, str]] = ()
        sender, me, commands = parse.presser(event), self._session.me, self._commands
        try:
            async with clock.limit(TYPING_LIMIT):
                channel = await self._threads.channel(event)
                where = parse.conversation_of(event, me, channel) if me else None
                if where is not None and sender is not None and commands is not None:
                    name, typed = parse.command_of(event), parse.read_typed(event)
                    found = await commands.choices(where, sender, name, typed)
        except TimeoutError:
            log.info("discord_choices_late")
        except Exception:  # boundary: no choices are offered, and the rest goes on
            log.exception("discord_no_choices")
        return menu.make_choices(found)

    # ---- the menu ------------------------------------------------------------------------

    async def _offer(self, commands: DiscordCommands) -> None:
        """Replace the bot's slash commands; that may fail."""
        me = self._session.me
        if me is None:
            return
        path = "/applications/{application_id}/commands"
        route = Route("PUT", path, application_id=me.application)
        try:
            taken = await self._wire.request(route, json=menu.rows(commands))
        except DeliveryError as error:
            log.warning("discord_no_menu", extra={"error": str(error)})
            return
        known = parse.read_command_ids(taken)
        if known != self._memory.commands:
            self._memory.commands = known
            await self._session.save(now=True)


def read_deletions(event: parse.Json, known: Mapping[str, MessageOrigin]) -> Sequence[Inbound]:
    """Parse deletions; Discord does not tell what the messages were, `known` does."""
    ids = event.get("ids")
    gone = [*(ids if isinstance(ids, list) else ()), event.get("id")]
    return [
        MessageDeleted(
            conversation=known[message].conversation,
            sender=known[message].sender,
            event=f"d{message}",
            message=message,
        )
        for message in gone
        if isinstance(message, str) and message in known
    ]
