"""What comes from Discord on its way to the gateway: a line of events, each of which leaves it
only when it is kept. Interactions are acknowledged at once: Discord waits 3 seconds for it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol

from discord.http import Route

from adapters.discord import parse
from adapters.discord.components import EPHEMERAL, NO_PINGS, WRITES, modal, word
from adapters.discord.markdown import code
from adapters.discord.session import Session
from adapters.discord.transport import Refused, Wire
from gateway import clock
from gateway.errors import DeliveryError, Rejected, StoreFailed, Unsent
from gateway.messages import Inbound, MessageReceived, Sender
from gateway.ports import Accept
from gateway.texts import say

log = logging.getLogger("adapters.discord")

LEAST_PAUSE, MOST_PAUSE = 0.5, 15.0
BATCH, MOST_WAITING, MOST_KNOWN = 100, 2_000, 5_000
MESSAGE, DEFERRED = 4, 6
"""Answers to an interaction: a message, and 'the message stays as it is'."""


class Commands(Protocol):
    """What the menu of commands is made of."""

    def rows(self, language: str, *, admin: bool) -> Sequence[tuple[str, str]]:
        """(name, description) of each command."""


class Receiver:
    """One bot's incoming side. `contact` is called at each proof that it is live."""

    kinds = (
        "MESSAGE_CREATE",
        "MESSAGE_UPDATE",
        "MESSAGE_DELETE",
        "MESSAGE_DELETE_BULK",
        "INTERACTION_CREATE",
    )

    def __init__(
        self, wire: Wire, session: Session, contact: Callable[[], None], commands: Commands | None
    ) -> None:
        self.contact = contact
        self._wire = wire
        self._session = session
        self._commands = commands
        self._line: deque[tuple[int, str, parse.Json]] = deque()
        self._more, self._less = asyncio.Event(), asyncio.Event()
        self._parents: dict[str, str] = {}
        self._senders: dict[str, Sender] = {}
        self._group: asyncio.TaskGroup | None = None

    async def run(self, accept: Accept) -> None:
        """Receive until cancelled. Rejected if Discord refuses the bot for good."""
        await self._insist(self._session.identify)
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                group.create_task(self._keep(accept))
                group.create_task(self._session.listen(self))
        except* Rejected as refused:
            raise _first(refused) from None
        finally:
            await self._session.save()

    # ---- as the session's listener -------------------------------------------------------

    def opened(self) -> None:
        """Once: the menu of commands."""
        commands, self._commands = self._commands, None
        if commands is not None and self._group is not None:
            self._group.create_task(self._offer(commands))

    def came(self, number: int, kind: str, event: parse.Json) -> None:
        """Into the line; an interaction is answered besides."""
        if kind == "INTERACTION_CREATE" and self._group is not None:
            self._group.create_task(self._acknowledge(event))
        self._line.append((number, kind, event))
        self._more.set()

    async def room(self) -> None:
        """While the store is away, Discord keeps what is more than MOST_WAITING."""
        while len(self._line) >= MOST_WAITING:
            self._less.clear()
            await self._less.wait()

    # ---- keeping -------------------------------------------------------------------------

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
            self._less.set()
            await self._session.keep(taken[-1][0])

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
        me = self._session.me
        if me is None:
            return ()
        if kind.startswith("MESSAGE_DELETE"):
            return parse.parse_deleted(event, me, parent, self._senders)
        inbound = parse.parse(kind, event, me, parent)
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

    async def _insist(self, step: Callable[[], Awaitable[None]]) -> None:
        """Make `step` again until it ends well, after pauses that double."""
        pause = LEAST_PAUSE
        while True:
            try:
                return await step()
            except Rejected:
                raise
            except DeliveryError as error:
                log.warning("discord_unreachable", extra={"pause": pause, "error": repr(error)})
            except StoreFailed:
                log.error("discord_not_stored", extra={"pause": pause})
            except Exception:  # the border: whatever accept raises, the events stay
                log.exception("discord_not_accepted", extra={"pause": pause})
            await clock.wait(pause)
            pause = min(2 * pause, MOST_PAUSE)

    # ---- interactions --------------------------------------------------------------------

    async def _acknowledge(self, event: parse.Json) -> None:
        """The one answer that an interaction gets from here; a replayed one has it already."""
        answer = _answer(event)
        number, token = event.get("id"), event.get("token")
        if answer is None or not isinstance(number, str) or not isinstance(token, str):
            return
        path = "/interactions/{webhook_id}/{webhook_token}/callback"
        route = Route("POST", path, webhook_id=number, webhook_token=token)
        try:
            try:
                await self._wire.request(route, json=answer)
            except Unsent:
                await self._wire.request(route, json=answer)
        except DeliveryError as error:
            log.info("discord_interaction_unanswered", extra={"error": str(error)})

    # ---- the menu ------------------------------------------------------------------------

    async def _offer(self, commands: Commands) -> None:
        """Replace the bot's slash commands; that may fail."""
        me = self._session.me
        if me is None:
            return
        rows, german = (commands.rows(language, admin=True) for language in ("", "de"))
        about = dict(german)
        menu = [_command(name, text, about.get(name, text)) for name, text in rows[:100]]
        path = "/applications/{application_id}/commands"
        try:
            await self._wire.request(Route("PUT", path, application_id=me.application), json=menu)
        except DeliveryError as error:
            log.warning("discord_no_menu", extra={"error": str(error)})


def _answer(event: parse.Json) -> dict[str, object] | None:
    """What is said to an interaction at once, None to one that we do not know."""
    language = str(event.get("locale", ""))
    token = parse.token_of(event)
    match event.get("type"):
        case parse.COMMAND_GIVEN:
            data = event.get("data")
            name = data.get("name") if isinstance(data, dict) else ""
            shown = {"content": f"◐ {code(f'/{name}')}", "flags": EPHEMERAL}
            return {"type": MESSAGE, "data": shown | {"allowed_mentions": NO_PINGS}}
        case parse.PRESSED if token.startswith(WRITES):
            token = token.removeprefix(WRITES)
            if token.endswith(":text"):
                return modal(token, say("your_answer", language), needed=True)
            if token.endswith(":deny"):
                return modal(token, word("reason", language), needed=False)
            return modal(token, word("wishes", language), needed=True)
        case parse.PRESSED | parse.FILLED_IN:
            return {"type": DEFERRED}
    return None


def _command(name: str, about: str, german: str) -> dict[str, object]:
    """A slash command that takes words; in servers and in private chats with the bot."""
    words = {
        "type": 3,
        "name": "text",
        "description": word("arguments", "en"),
        "description_localizations": {"de": word("arguments", "de")},
        "required": False,
    }
    return {
        "type": 1,
        "name": name,
        "description": about[:100],
        "description_localizations": {"de": german[:100]},
        "options": [words],
        "integration_types": [0],
        "contexts": [0, 1],
    }


def _first(errors: BaseExceptionGroup[Rejected]) -> Rejected:
    found = errors.exceptions[0]
    return found if isinstance(found, Rejected) else _first(found)
