"""Telegram: one bot's connection, as the gateway's Adapter port."""

import logging
import re
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeGuard
from urllib.parse import quote

import msgspec
from aiohttp import web
from msgspec.structs import replace
from telegram.error import BadRequest as Refused
from telegram.error import ChatMigrated, Forbidden, InvalidToken, NetworkError, TelegramError

from adapters.telegram.files import (
    MAX_FETCHED,
    PHOTO,
    as_documents,
    caption_of,
    download,
    open_sources,
    sources_of,
)
from adapters.telegram.payloads import TelegramUpload
from adapters.telegram.receive import TelegramCommands, TelegramReceiver
from adapters.telegram.render import render, render_draft, write_command
from adapters.telegram.transport import AiohttpRequest, Flood, NotSent, RawBot
from gateway import clock
from gateway.command_texts import write_commands
from gateway.errors import (
    Ambiguous,
    ChatClosed,
    DeliveryError,
    Gone,
    RateLimited,
    Rejected,
    TokenRefused,
    Unsent,
)
from gateway.messages import Attachment, Conversation, digest
from gateway.ports import Accept
from gateway.views import Abilities, View

log = logging.getLogger("adapters.telegram")

SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")
FORMATTING = re.compile(r"entit|can't parse|url|link", re.IGNORECASE)
"""Texts of a 400 for invalid formatting, where the bare text would pass."""
GONE = re.compile(r"message to (?:edit|delete) not found|message_id_invalid", re.IGNORECASE)
"""Texts of a 400 to an edit or a removal of a deleted message."""
SENDS = ("send", "edit")
NO_CHAT = re.compile(
    r"chat not found|group chat was deleted|topic_closed|topic_deleted|message thread not found"
    r"|not enough rights to send text messages|have no rights to send|have no write access"
    r"|need administrator rights|chat_write_forbidden|chat_send_plain_forbidden|chat_restricted"
    r"|user_banned_in_channel|channel_private",
    re.IGNORECASE,
)
"""Texts of a 400 for a missing chat or topic, or missing rights; a bot that was removed or blocked
gets a 403."""
RECENT_METHODS = ("sendRichMessage", "sendMessageDraft", "sendRichMessageDraft")
"""Methods that older servers answer with 404, although the token may be good."""
MAX_TOLD = 200
MAX_REFUSED = 64
EYES = [{"type": "emoji", "emoji": "👀"}]


class _Unknown(Rejected):
    """The server does not know the method: it is older than it."""


class TelegramAdapter:
    """One bot. `webhook_url` (with `webhook_secret`) makes it receive by webhook, otherwise by long
    polling; `outputs` is the folder of files that the agent sends. ValueError if a setting cannot
    work.

    Servers before Bot API 10.2 have no rich messages, older ones no drafts. Each is learned from
    the first refusal: `rich` becomes False and the view is rendered again in the other form;
    `abilities` lose drafts, and answers grow by edits.
    """

    platform = "telegram"
    abilities = Abilities(drafts=True, replies=True, edit_interval=1.0, send_timeout=20.0)

    def __init__(  # noqa: PLR0913 - a setting each
        self,
        token: str,
        api_base_url: str = "https://api.telegram.org",
        webhook_url: str = "",
        webhook_secret: str = "",
        commands: TelegramCommands | None = None,
        outputs: Path | None = None,
    ) -> None:
        _check_webhook(webhook_url, webhook_secret)
        if not token.strip():
            raise ValueError("the Telegram bot token is empty")
        base = api_base_url.rstrip("/")
        self.last_contact = 0.0
        self.rich = True
        self._files = f"{base}/file/bot{token}"
        self._wire = AiohttpRequest(base)
        self._bot = RawBot(
            token, base_url=f"{base}/bot", request=self._wire, get_updates_request=self._wire
        )
        webhook = (webhook_url, webhook_secret) if webhook_url else None
        self._receiver = TelegramReceiver(self._bot, self._touch, webhook, commands)
        self._hooked = webhook is not None
        self._outputs = outputs
        self._draft_failed = False
        self._token_refused = False
        self._refused: deque[str] = deque(maxlen=MAX_REFUSED)

    @property
    def routes(self) -> Sequence[web.AbstractRouteDef]:
        return [web.post("/telegram/webhook", self._receiver.hook)] if self._hooked else []

    async def run(self, accept: Accept) -> None:
        """Receive until cancelled; Rejected if Telegram refuses the token."""
        await self._wire.initialize()
        try:
            await self._receiver.run(accept)
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        await self._wire.shutdown()

    def change_webhook(self, url: str, secret: str) -> None:
        """Receive by this webhook from now on; calls with the old secret are accepted for a minute
        more. ValueError if it cannot work, or if the bot does not receive by webhook."""
        if not self._hooked or not url:
            raise ValueError("changing between webhook and long poll needs a restart")
        _check_webhook(url, secret)
        self._receiver.rehook(url, secret)

    def render(self, view: View, conversation: Conversation) -> tuple[bytes, ...]:
        """Bot API payloads; in groups commands name the bot."""
        bot = self._name_bot(conversation)
        payloads = render(view, rich=self.rich, bot=bot)
        if self._refused and any(digest(payload) in self._refused for payload in payloads):
            return render(view, rich=False, bot=bot)
        return payloads

    def _name_bot(self, conversation: Conversation) -> str:
        """Return the bot's name where there may be others, "" in a private chat."""
        return "" if conversation.private else self._receiver.username

    async def send(self, conversation: Conversation, payload: bytes, answers: str = "") -> str:
        """The new message's id, an album's first one's. A field to answer in then opens for who
        wrote the message that it `answers`."""
        data = _body(payload) | _address(conversation)
        markup = data.get("reply_markup")
        if _is_form(markup) and "force_reply" not in markup:
            del data["reply_markup"]  # it was closed before it was sent
        if answers:
            replied = {"message_id": _number(answers), "allow_sending_without_reply": True}
            data["reply_parameters"] = replied
            if _is_form(markup):
                markup["selective"] = True
        method = str(data.pop("method"))
        if "files" in data and (files := sources_of(data)):
            answer = await self._call_with_files(method, data, files)
        elif "rich_message" in data:
            answer = await self._call_rich(method, data, payload)
        else:
            answer = await self._call_formatted(method, data)
        message = answer[0] if isinstance(answer, list) and answer else answer
        number = message.get("message_id") if isinstance(message, dict) else None
        if not isinstance(number, int):
            raise Ambiguous(f"the answer to {method} names no message")
        return str(number)

    async def edit(self, conversation: Conversation, native: str, payload: bytes) -> None:
        """Edit a message. Only inline keyboards survive an edit; without one, the buttons go. Of a
        message with files the caption changes, and one of words gets no file. One that opened a
        reply field cannot be edited, and stays as it was sent; while the field is open the edit is
        tried, as that shows whether the message is still there."""
        data = _body(payload) | _message(conversation, native)
        del data["method"]
        data.pop("disable_notification", None)  # an edit never notifies
        if _is_form(markup := data.get("reply_markup")):
            if "force_reply" in markup:
                await self._find_form(data)
            return
        try:
            if "files" in data and sources_of(data):
                where = _message(conversation, native)
                await self._call("editMessageCaption", where | caption_of(data))
            elif "rich_message" in data:
                await self._call_rich("editMessageText", data, payload)
            else:
                await self._call_formatted("editMessageText", data)
        except Rejected as error:
            why = str(error).lower()
            if "message is not modified" not in why and "no caption in the message" not in why:
                raise

    async def _find_form(self, data: dict[str, object]) -> None:
        """Raise Gone if the message is not there any more."""
        try:
            await self._call_formatted("editMessageText", data | {"reply_markup": None})
        except (Gone, ChatClosed):
            raise
        except Rejected:
            pass  # it cannot be edited, so it is there

    async def remove(self, conversation: Conversation, native: str) -> None:
        """Delete the message; Telegram lets a bot within 48 hours."""
        try:
            await self._call("deleteMessage", _message(conversation, native))
        except Gone:
            pass

    async def draft(self, conversation: Conversation, key: int, text: str) -> None:
        """Private chats only; a draft that fails costs nothing but the preview."""
        if not conversation.private:
            return
        data = _address(conversation) | render_draft(text)
        data["draft_id"] = (key & 0x7FFFFFFF) or 1
        if self._receiver.stoppable:
            data["can_stop"] = True
        try:
            await self._call("sendMessageDraft", data)
        except RateLimited:
            raise
        except DeliveryError as error:
            if isinstance(error, _Unknown):
                self.abilities = replace(self.abilities, drafts=False)
            if not self._draft_failed:
                self._draft_failed = True
                log.warning("telegram_no_drafts", extra={"error": str(error)})

    async def probe(self) -> None:
        """Check that the server answers."""
        await self._call("getMe", {})

    async def tell(self, conversation: Conversation, press: str, text: str) -> None:
        """A press too old to be answered is let go."""
        data: dict[str, object] = {"callback_query_id": press}
        if text:
            bot = self._name_bot(conversation)
            text = write_commands(text, partial(write_command, bot=bot))
            shown = text if len(text) <= MAX_TOLD else f"{text[: MAX_TOLD - 1]}…"
            data |= {"text": shown, "show_alert": True}
        try:
            await self._call("answerCallbackQuery", data)
        except (Rejected, Ambiguous) as error:
            log.info("telegram_press_unanswered", extra={"error": str(error)})

    async def receipt(self, conversation: Conversation, message: str) -> None:
        """Eyes on the message; where reactions are not allowed, the bot is seen typing."""
        try:
            data = _message(conversation, message) | {"reaction": EYES}
            try:
                await self._call("setMessageReaction", data)
            except Rejected:
                await self.show_work(conversation, message)
        except DeliveryError as error:
            log.debug("telegram_no_receipt", extra={"error": str(error)})

    async def clear_receipt(self, conversation: Conversation, message: str) -> None:
        """Remove the eyes."""
        try:
            data = _message(conversation, message) | {"reaction": []}
            await self._call("setMessageReaction", data)
        except (Rejected, Ambiguous) as error:
            log.debug("telegram_receipt_stays", extra={"error": str(error)})

    async def show_work(self, conversation: Conversation, message: str) -> bool:
        """Seen typing, for 5 seconds."""
        try:
            await self._call("sendChatAction", _address(conversation) | {"action": "typing"})
        except (Rejected, Ambiguous) as error:
            log.debug("telegram_work_not_shown", extra={"error": str(error)})
        return False

    async def fetch(self, attachment: Attachment, to: BinaryIO) -> None:
        """Fetch at most 20 MB, the limit of the Bot API."""
        file = await self._call("getFile", {"file_id": attachment.ref})
        path = file.get("file_path") if isinstance(file, dict) else None
        size = file.get("file_size") if isinstance(file, dict) else None
        if not isinstance(path, str) or not path:
            raise Rejected("Telegram does not hand out this file")
        if max(attachment.size, size if isinstance(size, int) else 0) > MAX_FETCHED:
            raise Rejected("the file is larger than 20 MB")
        try:
            await download(self._wire, f"{self._files}/{quote(path)}", to)
        except Refused as error:
            raise self._decision(error) from None
        except TelegramError as error:
            raise Unsent(error.message) from None  # a download may be repeated

    async def _call_rich(self, method: str, data: dict[str, object], payload: bytes) -> object:
        """Call a method with a rich message. A refused one was not sent: Unsent makes the outbox
        render its view again, in the other form."""
        try:
            return await self._call(method, data)
        except _Unknown as error:
            self.rich = False
            log.warning("telegram_no_rich_messages", extra={"error": str(error)})
            raise Unsent("the server has no rich messages") from None
        except (Gone, ChatClosed):
            raise
        except Rejected as error:
            if "message is not modified" in str(error).lower():
                raise
            self._refused.append(digest(payload))
            log.warning("telegram_rich_refused", extra={"error": str(error)})
            raise Unsent(f"refused as a rich message: {error}") from None

    async def _call_with_files(
        self, method: str, data: dict[str, object], files: Mapping[str, TelegramUpload]
    ) -> object:
        """`_call` with files; pictures that cannot be shown as photos go as documents."""
        try:
            return await self._call(method, data, files)
        except Rejected as error:
            photos = method == "sendPhoto" or "photo" in str(data.get("media"))
            if not photos or not PHOTO.search(str(error)):
                raise
            log.info("telegram_photo_refused", extra={"error": str(error)})
        return await self._call(*as_documents(data, files))

    async def _call_formatted(self, method: str, data: dict[str, object]) -> object:
        """Call a method; text whose formatting Telegram refuses is sent bare rather than lost."""
        try:
            return await self._call(method, data)
        except Rejected as error:
            if "entities" not in data or not FORMATTING.search(str(error)):
                raise
            log.warning("telegram_unformatted", extra={"error": str(error)})
        return await self._call(method, {k: v for k, v in data.items() if k != "entities"})

    async def _call(
        self,
        method: str,
        data: dict[str, object],
        files: Mapping[str, TelegramUpload] | None = None,
    ) -> object:
        try:
            try:
                return await self._call_once(method, data, files)
            except ChatMigrated as moved:  # the group became a supergroup: its messages go there
                return await self._call_once(method, _move(data, moved.new_chat_id), files)
        except TelegramError as error:
            raise self._decision(error, method) from None

    async def _call_once(
        self, method: str, data: dict[str, object], files: Mapping[str, TelegramUpload] | None
    ) -> object:
        if files:
            async with open_sources(files, self._outputs) as parts:
                answer = await self._bot.call(method, data | parts)
        else:
            answer = await self._bot.call(method, data)
        self._token_refused = False
        return answer

    def _decision(self, error: TelegramError, method: str = "") -> DeliveryError:
        match error:
            case Flood():
                return RateLimited(error.retry_after)
            case NotSent():
                return Unsent(error.message)
            case Refused() if method.startswith(("edit", "delete")) and GONE.search(error.message):
                return Gone(error.message)
            case Refused() if method.startswith(SENDS) and NO_CHAT.search(error.message):
                return ChatClosed(error.message)
            case Forbidden() if method.startswith(SENDS):
                return ChatClosed(error.message)
            case Refused():  # PTB raises NetworkError
                return Rejected(error.message)
            case InvalidToken() if (
                method in RECENT_METHODS and "unauthorized" not in error.message.lower()
            ):
                return _Unknown(error.message)
            case InvalidToken():
                self._token_refused = True
                self.last_contact = 0.0
                log.error("telegram_token_refused")
                return TokenRefused(error.message)
            case NetworkError():
                return Ambiguous(error.message)
        return Rejected(error.message)

    def _touch(self) -> None:
        if not self._token_refused:
            self.last_contact = clock.monotonic()


def _check_webhook(url: str, secret: str) -> None:
    if bool(url) != bool(secret):
        raise ValueError("a Telegram webhook needs both its URL and a secret")
    if secret and not SECRET.fullmatch(secret):
        raise ValueError("a Telegram webhook secret is 1-256 of A-Z a-z 0-9 _ -")


def _body(payload: bytes) -> dict[str, object]:
    data: dict[str, object] = msgspec.json.decode(payload)
    return data


def _is_form(markup: object) -> TypeGuard[dict[str, object]]:
    """Return True for a form, open or closed: a message that opens a reply field cannot be
    edited."""
    return isinstance(markup, dict) and ("force_reply" in markup or "remove_keyboard" in markup)


def _move(data: dict[str, object], chat: int) -> dict[str, object]:
    """Return a call's data for the supergroup that its group became. Messages have other numbers
    there, at which others' stand: Gone for an edit, and no reply."""
    if "message_id" in data:
        raise Gone("group chat was upgraded to a supergroup chat")
    return {name: one for name, one in data.items() if name != "reply_parameters"} | {
        "chat_id": chat
    }


def _address(conversation: Conversation) -> dict[str, object]:
    where: dict[str, object] = {"chat_id": _number(conversation.channel)}
    if conversation.thread:
        where["message_thread_id"] = _number(conversation.thread)
    return where


def _message(conversation: Conversation, native: str) -> dict[str, object]:
    return {"chat_id": _number(conversation.channel), "message_id": _number(native)}


def _number(native: str) -> int:
    try:
        return int(native)
    except ValueError:
        raise Rejected(f"not a Telegram id: {native!r}") from None
