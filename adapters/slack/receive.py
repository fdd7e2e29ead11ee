"""Receives from Slack: Socket Mode and signed HTTP requests. Owns the acknowledgements.

slack_sdk's own socket clients acknowledge in the handler, keep no order between events, and retry a
connection's one-time URL for ever when it fails. Here one queue of envelopes is stored in order,
and each is acknowledged after `accept` returned; Slack repeats the others.
"""

import asyncio
import json
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import aiohttp
from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from adapters.http_errors import unwrap_refusal
from adapters.incoming import clean_strings
from adapters.slack import blocks, parse
from adapters.slack.home import Homes
from adapters.slack.live.about import MessageShortcut, read_question
from adapters.slack.live.missed import Backfill
from adapters.slack.live.own_chats import OwnChats
from adapters.slack.live.reach import HookReach
from adapters.slack.people import SlackPeople
from adapters.slack.transport import SlackWire
from gateway import clock
from gateway.accounts.slack import Slack
from gateway.errors import (
    DeliveryError,
    RateLimited,
    Rejected,
    StoreFailed,
    TokenRefused,
    Unsent,
)
from gateway.messages import Inbound, MessageEdited, MessageReceived, Sender, sender_of
from gateway.ports import Accept

if TYPE_CHECKING:
    from slack_bolt.response import BoltResponse

log = logging.getLogger("adapters.slack")

MIN_PAUSE, MAX_PAUSE = 0.5, 15.0
"""Seconds before a failed step is repeated, doubled each time."""
BATCH, MAX_BODY = 100, 1 << 20
CHECK = 60.0
"""Seconds between two looks whether Slack still knows us, when it calls us over HTTP."""
GREETING, SILENCE, REST, MIN_LIFE = 10.0, 20.0, 30.0, 5.0
"""Seconds until a connection's hello; seconds of silence in which only pings show that it lives;
seconds for which one that Slack wants renewed is still read;
seconds under which a connection counts as failed: no storm of connections."""
MAX_WAITING, LEAST = 16 << 20, 1 << 10
"""Characters of envelopes that wait to be stored, of which each counts at least that many: with
more, Slack keeps the rest."""
OPENING = 2.5
"""Seconds for a modal to open: Slack's trigger is valid for three."""
GAP = 150.0
"""Seconds of silence after which missed messages are read back: Slack itself repeats what it could
not deliver, for some minutes."""
REPEATED = 150.0
"""Seconds for which Slack surely repeats what was not acknowledged; what could not be stored for
longer is read back."""
REFUSED_SOCKET = ("not_allowed_token_type", "missing_scope")


class _Envelope(Struct, frozen=True):
    socket: aiohttp.ClientWebSocketResponse
    id: str
    kind: str
    payload: parse.Json
    size: int


class SlackReceiver:
    """One app's incoming side: by Socket Mode with an `app_token`, otherwise over HTTP, signed with
    the `signing_secret`. `contact` is called at each proof that inbound is live."""

    def __init__(
        self,
        wire: SlackWire,
        people: SlackPeople,
        homes: Homes,
        contact: Callable[[], None],
        app: Slack,
    ) -> None:
        self._wire, self._people, self._homes = wire, people, homes
        self._about = MessageShortcut(wire, people)
        self._contact = contact
        self._app_token = app.app_token
        self._enter = None if self._app_token else _open_door(app.signing_secret, self._let_in)
        self._me: parse.SlackBot | None = None
        self._accept: Accept | None = None
        self._line: asyncio.Queue[_Envelope] = asyncio.Queue()
        self._waiting, self._room = 0, asyncio.Event()
        self._gap, self._alive_at = asyncio.Event(), -math.inf
        self._unstored_since = math.inf
        self._reach, self._chats = HookReach(), OwnChats(wire)

    async def run(self, accept: Accept) -> None:
        """Receive until cancelled. Rejected if Slack refuses a token."""
        await self._identify()
        self._accept = accept
        if not self._app_token:
            while True:
                await clock.wait(CHECK)
                await self._identify()
                if self._reach.is_quiet():
                    self._gap.set()
        with unwrap_refusal():
            async with asyncio.TaskGroup() as group:
                group.create_task(self._keep())
                group.create_task(self._connect(group))

    async def _identify(self) -> None:
        """Learn who we are, however long that takes."""
        pause = MIN_PAUSE
        while True:
            try:
                me = parse.read_me(await self._wire.call("auth.test", {}))
            except DeliveryError as error:
                pause = await self._wait_after(error, pause)
                continue
            if me is None:
                raise Rejected("SLACK_BOT_TOKEN belongs to no bot")
            self._me = self._people.me = me
            if not self._app_token:
                self._reach.listen()
            return self._contact() if self._app_token else self._note_alive()

    def _note_alive(self) -> None:
        """Note that requests arrive; if that is news, something may have been missed before."""
        if clock.monotonic() - self._alive_at > GAP:
            self._gap.set()
        self._alive_at = clock.monotonic()
        if self._app_token or self._reach.proven:
            self._contact()

    async def catch_up(self, missed: Backfill, accept: Accept) -> None:
        """Read back missed messages, at the start and after each gap, until cancelled."""
        while True:
            await self._gap.wait()
            self._gap.clear()
            if self._me is None:
                continue
            written: list[Inbound] = []
            async for inbounds in missed.read(self._me):
                written += inbounds
                named = [await self._resolve_names(one) for one in inbounds]
                while not await self._store(named, accept):
                    await clock.wait(MAX_PAUSE)
            if not self._app_token:
                self._reach.judge(written, missed.turns)
                self._note_alive()

    async def _resolve_names(self, inbound: Inbound) -> Inbound:
        sender = sender_of(inbound)
        if sender is None:
            return inbound
        if isinstance(inbound, MessageReceived | MessageEdited):
            inbound = replace(inbound, text=await self._people.name_mentioned(inbound.text))
        if isinstance(inbound, MessageReceived) and inbound.reply_to is not None:
            text = await self._people.name_mentioned(inbound.reply_to.text)
            inbound = replace(inbound, reply_to=replace(inbound.reply_to, text=text))
        if isinstance(inbound, MessageEdited) and inbound.said is not None:
            said = await self._resolve_names(inbound.said)
            assert isinstance(said, MessageReceived)
            inbound = replace(inbound, said=said)
        return replace(inbound, sender=await self._people.resolve_sender(sender))

    async def _wait_after(
        self, error: DeliveryError, pause: float, refused: Sequence[str] = ()
    ) -> float:
        """Wait before the next try; the pause after it."""
        why = str(error)
        if isinstance(error, TokenRefused) or why.split(":")[0] in refused:
            log.error("slack_token_refused", extra={"why": why})
            raise Rejected(f"Slack refuses the token ({why})") from None
        log.warning("slack_unreachable", extra={"pause": pause, "why": why})
        await clock.wait(error.retry_after if isinstance(error, RateLimited) else pause)
        return min(2 * pause, MAX_PAUSE)

    # ---- Socket Mode -----------------------------------------------------------------------

    async def _connect(self, group: asyncio.TaskGroup) -> None:
        """Keep a connection open. One that Slack wants renewed is read to its end while the next is
        opened."""
        pause = MIN_PAUSE
        while True:
            renew = asyncio.Event()
            try:
                url, began = await self._wire.open_socket(self._app_token), clock.monotonic()
                reading = group.create_task(self._read(url, renew))
                await renew.wait()
            except DeliveryError as error:
                pause = await self._wait_after(error, pause, REFUSED_SOCKET)
                continue
            brief = clock.monotonic() - began < MIN_LIFE
            if brief or (reading.done() and not reading.result()):
                pause = await self._wait_after(Unsent("the connection did not last"), pause)
            else:
                pause = MIN_PAUSE

    async def _read(self, url: str, renew: asyncio.Event) -> bool:
        """Queue the messages of a connection; `renew` is set when another one is needed. Return
        False if this one never worked."""
        greeted, until = False, math.inf
        try:
            async with self._wire.socket(url) as socket:
                while (left := until - clock.monotonic()) > 0:
                    patience = min(left, SILENCE if greeted else GREETING)
                    try:
                        async with clock.limit(patience):
                            message = await socket.receive()
                    except TimeoutError:
                        if not greeted:
                            return False
                        self._note_alive()  # Slack answers our pings; else the socket closes
                        continue
                    if message.type is not aiohttp.WSMsgType.TEXT:
                        return greeted
                    self._note_alive()
                    greeted = True
                    await self._wait_for_room()
                    if self._route_envelope(socket, message.data) == "disconnect":
                        until = min(until, clock.monotonic() + REST)
                        renew.set()
                return greeted
        except (DeliveryError, aiohttp.ClientError, OSError) as error:
            log.info("slack_connection_over", extra={"why": repr(error)})
            return greeted
        finally:
            renew.set()

    def _route_envelope(self, socket: aiohttp.ClientWebSocketResponse, text: str) -> str:
        """Return the kind of message; envelopes are queued."""
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            return ""
        if not isinstance(message, dict):
            return ""
        kind, name, payload = (message.get(key) for key in ("type", "envelope_id", "payload"))
        kind = kind if isinstance(kind, str) else ""
        if isinstance(name, str):
            known, size = payload if isinstance(payload, dict) else {}, max(len(text), LEAST)
            self._waiting += size
            self._line.put_nowait(_Envelope(socket, name, kind, known, size))
        return kind

    async def _wait_for_room(self) -> None:
        while self._waiting >= MAX_WAITING:
            self._room.clear()
            await self._room.wait()

    async def _keep(self) -> None:
        """Store the queued envelopes in order, then acknowledge them."""
        while True:
            batch = [await self._line.get()]
            while not self._line.empty() and len(batch) < BATCH:
                batch.append(self._line.get_nowait())
            self._waiting -= sum(one.size for one in batch)
            self._room.set()
            inbounds = [await self._parse_payload(one.kind, one.payload) for one in batch]
            if not await self._store_live([one for one in inbounds if one is not None]):
                continue  # not acknowledged: Slack sends it again
            for one in batch:
                try:
                    await one.socket.send_str(json.dumps({"envelope_id": one.id}))
                except (aiohttp.ClientError, OSError):
                    log.info("slack_not_acknowledged", extra={"envelope": one.id})

    # ---- HTTP ------------------------------------------------------------------------------

    async def hook(self, request: web.Request) -> web.Response:
        """POST of events, presses and commands; 503 makes Slack send an event again."""
        if (request.content_length or 0) > MAX_BODY:
            return web.Response(status=413)
        body = await request.content.read(MAX_BODY + 1)
        while len(body) <= MAX_BODY and (more := await request.content.read(MAX_BODY)):
            body += more
        if len(body) > MAX_BODY:
            return web.Response(status=413)
        if self._enter is None:
            return web.Response(status=404)
        answer = await self._enter(body, request.headers)
        return web.Response(status=answer.status, text=answer.body, headers=answer.first_headers())

    async def _let_in(self, kind: str, payload: parse.Json) -> int:
        if self._accept is None:
            return 503
        inbound = await self._parse_payload(kind, payload)
        self._reach.hear(inbound)
        self._note_alive()
        kept = await self._store_live([inbound] if inbound is not None else [])
        return 200 if kept else 503

    # ---- both ------------------------------------------------------------------------------

    async def _parse_payload(self, kind: str, payload: parse.Json) -> Inbound | None:
        """Parse a payload, with people's names; a press that asks for words opens a modal."""
        if self._me is None:
            return None
        clean_strings(payload)
        try:
            inbound = parse.parse(kind, payload, self._me) or read_question(payload, self._me)
            if (seen := parse.home_opened(payload, self._me)) is not None:
                self._homes.open_home(*seen)
            if inbound is None and kind == "interactive":
                await self._open(payload, self._me)
        except Exception:  # boundary: one bad payload must not block the others
            log.exception("slack_poison_payload", extra={"kind": kind})
            return None
        try:
            inbound = await self._chats.place_command(inbound, payload)
            return await self._resolve_names(inbound) if inbound is not None else None
        except Exception:  # boundary: without their names, the words still count
            log.exception("slack_no_facts", extra={"kind": kind})
            return inbound

    async def _open(self, payload: parse.Json, me: parse.SlackBot) -> None:
        """Open the modal that a shortcut or a button asks for; its trigger lives for three
        seconds."""
        if await self._about.handle_shortcut(payload, me):
            return
        action, asked = parse.read_action(payload)
        user, trigger = payload.get("user"), payload.get("trigger_id")
        if asked is None or not str(action.get("action_id", "")).startswith(parse.WRITES):
            return
        name = str(user.get("id", "")) if isinstance(user, dict) else ""
        person = await self._people.resolve_sender(Sender(platform="slack", id=name))
        view = blocks.modal(asked, person.language)
        try:
            async with clock.limit(OPENING):
                await self._wire.call("views.open", {"trigger_id": trigger, "view": view})
        except (DeliveryError, TimeoutError) as error:
            log.warning("slack_no_modal", extra={"why": str(error)})

    async def _store_live(self, inbounds: Sequence[Inbound]) -> bool:
        """Store what Slack sends, or else have it read back once the store works again."""
        if await self._store(inbounds):
            self._unstored_since = math.inf if inbounds else self._unstored_since
            return True
        self._unstored_since = min(self._unstored_since, clock.monotonic())
        if clock.monotonic() - self._unstored_since >= REPEATED:
            self._gap.set()
        return False

    async def _store(self, inbounds: Sequence[Inbound], accept: Accept | None = None) -> bool:
        accept = accept or self._accept
        try:
            if inbounds and accept is not None:
                await accept(inbounds)
        except StoreFailed as error:
            log.error("slack_not_stored", extra={"why": str(error)})  # noqa: TRY400
            return False
        except Exception:  # boundary: whatever accept raises, Slack sends it again
            log.exception("slack_not_accepted")
            return False
        return True


def _open_door(
    secret: str, heard: Callable[[str, parse.Json], Awaitable[int]]
) -> "Callable[[bytes, Mapping[str, str]], Awaitable[BoltResponse]]":
    """Make the handler of Slack's HTTP requests; Bolt is imported only here."""
    from adapters.slack.live.door import Door

    return Door(secret, heard).enter
