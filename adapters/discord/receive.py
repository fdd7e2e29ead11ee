"""Receives from Discord: a queue of events, each removed only when it is stored.

Interactions are acknowledged at once: Discord waits 3 seconds for it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from discord.http import Route
from msgspec.structs import replace

from adapters.discord import lost_chats, menu, parse
from adapters.discord.lost_chats import LostChats, lose_chat
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
TYPING_LIMIT = 2.0
"""Seconds for the choices of who types a command: Discord waits 3."""
BATCH, MAX_WAITING = 100, 2_000
GAP, PAGE = 86_400.0, 100
"""Seconds back from now, and messages of a channel, that are read after a gap at most."""


Event: TypeAlias = tuple[int, str, parse.Json]
"""An event's number in the session, its kind, its data."""


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

    def on_event(self, number: int, kind: str, event: parse.Json) -> None:
        """Queue the event; answer an interaction besides."""
        if kind == "INTERACTION_CREATE" and self._group is not None:
            self._memory.remember_language(event)
            answered = self._group.create_task(self._acknowledge(event))
            token = str(event.get("token"))
            self._answering[token] = answered
            answered.add_done_callback(lambda _: self._answering.pop(token, None))
            if event.get("type") == parse.COMMAND_GIVEN:
                self._echoes[number] = answered
        self._line.append((number, kind, event))
        self._more.set()

    async def wait_acknowledged(self, token: str) -> None:
        """Wait until the interaction with this token has its answer: Discord takes no further word
        before that."""
        if (answering := self._answering.get(token)) is not None:
            await asyncio.wait((answering,))

    async def wait_for_room(self) -> None:
        """Wait for room: while the store is unavailable, Discord keeps what exceeds MAX_WAITING."""
        while len(self._line) >= MAX_WAITING:
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
            await self._insist(partial(self._hand_over, taken, accept))
            for _ in taken:
                self._line.popleft()
            self._less.set()
            await self._session.keep(taken[-1][0])

    async def _hand_over(self, taken: Sequence[Event], accept: Accept) -> None:
        batch: list[Inbound] = []
        for number, kind, event in taken:
            if kind in lost_chats.KINDS:
                batch += await self._find_lost(number, kind, event)
                continue
            channel = await self._threads.channel(event)
            event = await self._name_bot(event)
            try:
                batch += self._parse(kind, event, channel)
            except Exception:  # boundary: one bad event must not block the others
                log.exception("discord_poison_event", extra={"kind": kind})
        if batch:
            await accept(batch)
        for number, kind, event in taken:
            if kind == "MESSAGE_CREATE":
                self._memory.note_read(event)
            echo = self._echoes.pop(number, None)
            if echo is not None and self._group is not None:
                self._group.create_task(self._remove_echo(echo, event))

    async def _find_lost(self, number: int, kind: str, event: parse.Json) -> Sequence[Inbound]:
        me = self._session.me
        try:
            name = f"{self._session.id}:{number}"
            return await self._lost.find(kind, event, me, name) if me else ()
        except DeliveryError:
            raise
        except Exception:  # boundary: one bad event must not block the others
            log.exception("discord_poison_event", extra={"kind": kind})
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
        deduplicated by the store."""
        for channel, seen in self._memory.channels():
            said: list[parse.Json] = []
            lost: list[Inbound] = []
            await self._insist(partial(self._read, channel, seen, said, lost))
            if lost:
                await self._insist(partial(accept, lost))
            taken = [(0, "MESSAGE_CREATE", one) for one in said]
            if taken:
                log.info("discord_read_back", extra={"channel": channel, "messages": len(taken)})
                await self._insist(partial(self._hand_over, taken, accept))

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
                lost[:] = [lose_chat(me, seen.guild, *place, name) for place in places]
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
