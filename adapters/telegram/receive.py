"""Receives from Telegram: the poll loop and the webhook. Owns the offset.

The SDK's own Updater confirms updates before anything is stored. Here the offset moves, and a
webhook call is answered with 200, only after `accept` returned; the rest comes again.
"""

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Protocol

from aiohttp import web
from telegram.error import BadRequest, Conflict, InvalidToken, TelegramError

from adapters.http_errors import unwrap_refusal
from adapters.telegram.parse import TelegramBot, parse, read_me, update_id
from adapters.telegram.transport import Flood, Lost, RawBot, decode
from gateway import clock
from gateway.errors import Rejected, StoreFailed
from gateway.messages import Inbound
from gateway.ports import Accept
from gateway.texts import CATALOGUE
from gateway.texts.languages import ENGLISH

log = logging.getLogger("adapters.telegram")

POLL = 30
"""Seconds a poll stays open; one that is silent for GRACE more is dead, and repeated."""
GRACE = 10
BATCH = 100
HEAD_START = 0.005
"""Seconds between a batch and the next poll: what just came begins its turns meanwhile."""
MIN_PAUSE, MAX_PAUSE = 0.5, 15.0
"""Seconds before a failed step is repeated, doubled each time."""
CHECK_WEBHOOK = 60.0
"""Seconds between two looks whether the webhook is still set."""
OLD_SECRET = 60.0
"""Seconds that the secret of a changed webhook is still taken."""
MAX_BODY = 1 << 20

SURE_UPDATES = ("message", "edited_message", "callback_query", "my_chat_member")
STOP_UPDATE = "stopped_message_generation"  # Bot API 10.3
SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"


class TelegramCommands(Protocol):
    """The menu of commands. `admins`: ids of people who get the long one."""

    admins: Sequence[str]

    def rows(self, language: str, *, admin: bool) -> Sequence[tuple[str, str]]:
        """(name, description) of each command."""


class TelegramReceiver:
    """One bot's incoming side. `contact` is called at each proof that inbound is live."""

    def __init__(
        self,
        bot: RawBot,
        contact: Callable[[], None],
        webhook: tuple[str, str] | None,
        commands: TelegramCommands | None,
    ) -> None:
        self.stoppable = True
        self._bot = bot
        self._contact = contact
        self._webhook = webhook
        self._commands = commands
        self._me: TelegramBot | None = None
        self._accept: Accept | None = None
        self._offset = 0
        self._opened = asyncio.Event()
        self._menus: list[dict[str, object]] = []
        self._unhook = False
        self._rehook = asyncio.Event()
        self._heard = False
        self._old: tuple[str, float] = ("", 0.0)

    async def run(self, accept: Accept) -> None:
        """Receive until cancelled. Rejected if Telegram refuses the token."""
        with unwrap_refusal():
            async with asyncio.TaskGroup() as group:
                group.create_task(self._set_menus(), name="menus")
                await self._receive(accept)

    async def _receive(self, accept: Accept) -> None:
        await self._insist(self._identify)
        self._accept = accept
        if self._webhook is None:
            while True:
                await self._insist(self._poll)
        while True:
            await self._insist(self._keep_webhook)
            try:
                async with clock.limit(CHECK_WEBHOOK):
                    await self._rehook.wait()
            except TimeoutError:
                continue

    @property
    def username(self) -> str:
        """The bot's name, "" before it is known."""
        return self._me.username if self._me is not None else ""

    def rehook(self, url: str, secret: str) -> None:
        """Use another webhook; calls with the old secret may be under way."""
        if self._webhook is not None and self._webhook[1] != secret:
            self._old = (self._webhook[1], clock.monotonic() + OLD_SECRET)
        self._webhook = (url, secret)
        self._rehook.set()

    async def hook(self, request: web.Request) -> web.Response:
        """POST of one update; 503 makes Telegram send it again."""
        if not self._knows(request.headers.get(SECRET_HEADER, "")):
            return web.Response(status=401)
        body = await _read(request)
        if body is None:
            return web.Response(status=413)
        try:
            update = decode(body)
        except ValueError:
            return web.Response(status=400)
        if not isinstance(update, dict):
            return web.Response(status=400)
        if self._accept is None:
            return web.Response(status=503)
        self._heard = True
        self._contact()
        batch = self._parse_batch([update])
        try:
            if batch:
                await self._accept(batch)
        except StoreFailed:
            return web.Response(status=503)
        return web.Response()

    def _knows(self, secret: str) -> bool:
        given = secret.encode("utf-8", "surrogateescape")
        known = [self._webhook[1]] if self._webhook is not None else []
        if clock.monotonic() < self._old[1]:
            known.append(self._old[0])
        return any([hmac.compare_digest(given, one.encode()) for one in known])

    async def _insist(self, step: Callable[[], Awaitable[None]]) -> None:
        """Make `step` again until it ends well, after pauses that double."""
        pause = MIN_PAUSE
        while True:
            try:
                return await step()
            except InvalidToken:
                log.error("telegram_token_refused")
                raise Rejected("Telegram refuses the bot token (401 or 404)") from None
            except Flood as error:
                pause = max(pause, error.retry_after)
                log.warning("telegram_limited", extra={"pause": pause})
            except Conflict as error:
                self._unhook = "webhook" in error.message.lower()
                log.warning("telegram_conflict", extra={"pause": pause, "webhook": self._unhook})
            except TelegramError as error:
                self._doubt(error)
                log.warning("telegram_unreachable", extra={"pause": pause, "error": repr(error)})
            except StoreFailed as error:
                log.error("telegram_not_stored", extra={"pause": pause, "why": str(error)})  # noqa: TRY400
            except Exception:  # boundary: whatever accept raises, the updates are delivered again
                log.exception("telegram_not_accepted", extra={"pause": pause})
            await clock.wait(pause)
            pause = min(2 * pause, MAX_PAUSE)

    def _doubt(self, error: TelegramError) -> None:
        """Drop the stop button after an error: a server that refuses our list of updates may be too
        old for it."""
        if isinstance(error, BadRequest) and "update" in error.message.lower():
            self.stoppable = False

    async def _identify(self) -> None:
        self._me = read_me(await self._bot.call("getMe", {}))
        if self._me is None:
            raise Lost("getMe names no bot")

    async def _poll(self) -> None:
        if self._unhook:
            await self._bot.call("deleteWebhook", {"drop_pending_updates": False})
            self._unhook = False
        # The first poll returns at once, as proof of life.
        seconds = POLL if self._opened.is_set() else 0
        question: dict[str, object] = {
            "timeout": seconds,
            "limit": BATCH,
            "allowed_updates": self._list_updates(),
        }
        if self._offset:
            question["offset"] = self._offset
        began = clock.monotonic()
        updates = await self._bot.call("getUpdates", question, read_timeout=seconds + GRACE)
        newest = max(map(update_id, updates), default=0) if isinstance(updates, list) else -1
        if not isinstance(updates, list) or newest < 0:
            raise Lost("getUpdates answers no updates")
        self._contact()
        batch = self._parse_batch(updates)
        if batch and self._accept is not None:
            await self._accept(batch)
        # After an empty answer nothing is left to confirm; a stored offset would skip updates
        # when Telegram starts a new number range (after a quiet week).
        new = bool(updates) and newest >= self._offset
        self._offset = newest + 1 if updates else 0
        self._opened.set()
        if seconds and not new:  # a server, or a proxy, that does not hold polls open
            await clock.wait(MIN_PAUSE + began - clock.monotonic())
        elif batch:
            await clock.wait(HEAD_START)

    async def _keep_webhook(self) -> None:
        url, secret = self._webhook or ("", "")
        asking = self._opened.is_set() and not self._rehook.is_set()
        self._rehook.clear()  # another change meanwhile triggers it again
        told = await self._bot.call("getWebhookInfo", {}) if asking else None
        if not isinstance(told, dict) or told.get("url") != url:
            asked: dict[str, object] = {
                "url": url,
                "secret_token": secret,
                "allowed_updates": self._list_updates(),
            }
            await self._set_webhook(asked)
            told = await self._bot.call("getWebhookInfo", {})
        self._judge_webhook(told if isinstance(told, dict) else {})
        self._opened.set()

    def _judge_webhook(self, told: dict[str, object]) -> None:
        """Note that inbound is live if nothing waits at Telegram, or something came since the last
        look: a set webhook may still be unreachable."""
        waiting, heard = told.get("pending_update_count"), self._heard
        self._heard = False
        if heard or not waiting:
            self._contact()
            return
        why = str(told.get("last_error_message", ""))
        log.warning("telegram_webhook_unreached", extra={"waiting": waiting, "why": why})

    async def _set_webhook(self, asked: dict[str, object]) -> None:
        try:
            await self._bot.call("setWebhook", asked)
        except TelegramError:
            self._rehook.set()  # getWebhookInfo does not return the secret
            raise

    async def _set_menus(self) -> None:
        """Set the menus of commands once, after the first contact and beside what is received."""
        await self._opened.wait()
        self._menus = list(self._list_menus())
        while self._menus:
            await self._insist(self._set_menu)

    async def _set_menu(self) -> None:
        """Set the next of the menus; one that is refused is refused in all languages."""
        menu = self._menus[0]
        try:
            await self._bot.call("setMyCommands", menu)
        except (Flood, InvalidToken):
            raise
        except TelegramError as error:
            log.warning("telegram_no_menu", extra={"error": repr(error)})
            refused = isinstance(error, BadRequest)  # an admin who never wrote has no chat
            self._menus = [one for one in self._menus if refused and one["scope"] != menu["scope"]]
        else:
            del self._menus[0]

    def _list_menus(self) -> Iterator[dict[str, object]]:
        """Yield the menus by scope, then by language; the most specific one that fits a chat
        counts."""
        if self._commands is None:
            return
        scopes: list[tuple[dict[str, object], bool]] = [
            ({"type": "all_private_chats"}, False),
            ({"type": "all_group_chats"}, False),
        ]
        numbers = [int(one) for one in self._commands.admins if one.isdecimal()]
        scopes += [({"type": "chat", "chat_id": number}, True) for number in numbers]
        for scope, admin in scopes:
            for language in _list_languages():
                rows = self._commands.rows(language, admin=admin)[:100]
                if not rows:
                    continue
                commands = [{"command": name, "description": text[:256]} for name, text in rows]
                menu: dict[str, object] = {"commands": commands, "scope": scope}
                yield menu | ({"language_code": language} if language else {})

    def _list_updates(self) -> list[str]:
        return [*SURE_UPDATES, *((STOP_UPDATE,) if self.stoppable else ())]

    def _parse_batch(self, updates: Sequence[object]) -> list[Inbound]:
        batch = []
        for update in updates:
            try:
                inbound = parse(update, self._me) if isinstance(update, dict) and self._me else None
            except Exception:  # boundary: one bad update must not block the others
                log.exception("telegram_poison_update", extra={"update": update_id(update)})
                continue
            if inbound is not None:
                batch.append(inbound)
        return batch


def _list_languages() -> Iterator[str]:
    """Yield the languages of the command menu; "" is for everybody else, in English."""
    yield ""
    yield from (code for code in CATALOGUE.list_codes() if code != ENGLISH)


async def _read(request: web.Request) -> bytes | None:
    """Return the body, None if it is too large, without holding more than that."""
    if (request.content_length or 0) > MAX_BODY:
        return None
    body = bytearray()
    async for chunk in request.content.iter_chunked(1 << 16):
        body += chunk
        if len(body) > MAX_BODY:
            return None
    return bytes(body)
