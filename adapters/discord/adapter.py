"""Discord: one bot's connection, as the gateway's Adapter port."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit

import msgspec
from discord.http import Route

from adapters.discord.components import (
    EPHEMERAL,
    NO_PINGS,
    QUIET,
    SUPPRESS_EMBEDS,
    DiscordUpload,
)
from adapters.discord.markdown import write_command
from adapters.discord.memory import DiscordMemory
from adapters.discord.menu import DiscordCommands
from adapters.discord.moments import write_moment
from adapters.discord.parse import files_of, read_quotes, read_roles
from adapters.discord.receive import DiscordReceiver
from adapters.discord.render import render
from adapters.discord.session import DiscordSession
from adapters.discord.threads import ARCHIVED, UNKNOWN, UNKNOWN_MESSAGE, Threads
from adapters.discord.transport import DiscordClosed, DiscordRefused, DiscordWire, UploadPart
from adapters.outputs import find_copy
from gateway import clock
from gateway.command_texts import write_commands
from gateway.errors import Ambiguous, DeliveryError, Gone, Rejected, Unsent
from gateway.messages import Attachment, Conversation, Quote
from gateway.moment_texts import write_moments
from gateway.ports import Accept
from gateway.views import Abilities, View

if TYPE_CHECKING:
    from aiohttp.web import AbstractRouteDef

log = logging.getLogger("adapters.discord")

API, GATEWAY = "https://discord.com/api/v10", "wss://gateway.discord.gg/"
FILE_HOSTS = ("cdn.discordapp.com", "media.discordapp.net")
MAX_FETCHED = 25 << 20
MAX_TOLD = 2_000
EYES = "👀"
RECALLS = 120.0
"""Seconds for which Discord surely knows a nonce; it says 'a few minutes'."""
MAX_TRIES = 2
"""Maximum repetitions of a send whose answer was lost, with the same nonce."""
LAST_PAUSE = 0.2
"""Seconds before a message is sent again whose outcome is unknown."""
UNKNOWN_MEMBER = 10007
MUTE = frozenset({50013, ARCHIVED, 160005})
"""Codes of a message without files that the bot may not write: no permission, or a locked
thread."""


class DiscordAdapter:
    """One bot. `memory`: the file from which a restart resumes its session; `reads`: it wants all
    messages of servers, which needs the intent for it; `outputs`: the folder of files that the
    agent sends. A send has a nonce that Discord recognises for some minutes: an interrupted one is
    repeated, also after a crash, and arrives once."""

    platform = "discord"
    abilities = Abilities(
        replies=True, task_threads=True, edit_interval=1.2, send_timeout=20.0, recalls=RECALLS
    )
    routes: "Sequence[AbstractRouteDef]" = ()

    def __init__(  # noqa: PLR0913 - a setting each
        self,
        token: str,
        api_base_url: str = API,
        gateway_url: str = GATEWAY,
        commands: DiscordCommands | None = None,
        outputs: Path | None = None,
        memory: Path | None = None,
        *,
        reads: bool = False,
    ) -> None:
        if not token.strip():
            raise ValueError("the Discord bot token is empty")
        self.last_contact = 0.0
        self._wire = DiscordWire(token, api_base_url, self._lose_contact)
        self._own_host = urlsplit(api_base_url).netloc
        self._threads = Threads(self._wire)
        self._memory = DiscordMemory(memory)
        session = DiscordSession(self._wire, gateway_url, self._memory, reads=reads)
        self._receiver = DiscordReceiver(self._wire, session, self._threads, self._touch, commands)
        self._outputs = outputs

    async def run(self, accept: Accept) -> None:
        """Receive until cancelled; Rejected if Discord refuses the bot."""
        try:
            await self._receiver.run(accept)
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        await self._wire.close()

    def render(self, view: View, conversation: Conversation) -> tuple[bytes, ...]:
        """Messages in Components V2, the same in every chat."""
        return render(view, self._memory.commands)

    async def send(self, conversation: Conversation, payload: bytes, answers: str = "") -> str:
        """The new message's id."""
        return await self.send_as(clock.new_id(), conversation, payload, answers)

    async def send_as(
        self, name: str, conversation: Conversation, payload: bytes, answers: str = ""
    ) -> str:
        """The id of the message that has this `name`: Discord knows it for some minutes."""
        data = _body(payload)
        files = _sources(data)
        data |= {"nonce": name, "enforce_nonce": True}
        place = await self._threads.place(conversation)
        if answers == conversation.thread:  # it is in the channel where the thread begins
            answers = ""
        if replied := place.reply_to or answers:
            data["message_reference"] = {"message_id": replied, "fail_if_not_exists": False}
        if answers:
            allowed = data["allowed_mentions"]
            pings = allowed if isinstance(allowed, dict) else {}
            data["allowed_mentions"] = pings | {"replied_user": True}
        route = Route("POST", "/channels/{channel_id}/messages", channel_id=place.channel)
        try:
            answer = await self._send_parts(route, data, files)
        except DiscordRefused as error:
            if files or error.code not in MUTE:
                raise
            raise DiscordClosed(error.status, error.code, error.why) from None
        number = answer.get("id") if isinstance(answer, dict) else None
        if not isinstance(number, str):
            raise Ambiguous("the answer names no message")
        return number

    async def _send_parts(
        self, route: Route, data: dict[str, object], files: Sequence[DiscordUpload]
    ) -> object:
        for _ in range(MAX_TRIES):
            try:
                return await self._call(route, data, files)
            except Ambiguous as error:
                log.info("discord_sent_again", extra={"error": str(error)})
                await clock.wait(LAST_PAUSE)
        return await self._call(route, data, files)

    async def read_thread(
        self, conversation: Conversation, before: str, limit: int
    ) -> tuple[Quote, ...]:
        """Return () if the bot may not read, or the task is in its channel as replies."""
        query = f"limit={limit}&before={before}"
        route = Route("GET", "/channels/{channel_id}/messages", channel_id=conversation.thread)
        told = await self._wire.request(route, query=query)
        found = read_quotes(told, conversation.account)
        return tuple(sorted(found, key=lambda one: int(one.message)))

    async def read_groups(self, conversation: Conversation, person: str) -> tuple[str, ...] | None:
        """Return the person's roles in the conversation's server."""
        guild = conversation.workspace
        if not guild:
            return None
        path = "/guilds/{guild_id}/members/{user_id}"
        try:
            told = await self._wire.request(Route("GET", path, guild_id=guild, user_id=person))
        except DiscordRefused as error:
            return () if error.code == UNKNOWN_MEMBER else None
        return read_roles(told)

    async def edit(self, conversation: Conversation, native: str, payload: bytes) -> None:
        """The whole message, its files too; an edit never rings."""
        data = _body(payload)
        files = _sources(data)
        data["flags"] = int(str(data["flags"])) & ~QUIET
        data.setdefault("attachments", [])
        gone: Rejected | None = None
        for channel in self._threads.order(conversation):
            try:
                await self._edit_in(channel, native, data, files)
            except DiscordRefused as error:
                if error.code not in UNKNOWN:
                    raise
                if gone is None or error.code == UNKNOWN_MESSAGE:
                    gone = Gone(str(error)) if error.code == UNKNOWN_MESSAGE else error
            else:
                return
        if gone is not None:
            raise gone

    async def _edit_in(
        self, channel: str, native: str, data: dict[str, object], files: Sequence[DiscordUpload]
    ) -> None:
        """Edit a message; a thread that Discord put away meanwhile is opened again first."""
        route = _message("PATCH", channel, native)
        try:
            await self._call(route, data, files)
        except DiscordRefused as error:
            if error.code != ARCHIVED:
                raise
            again = Route("PATCH", "/channels/{channel_id}", channel_id=channel)
            await self._wire.request(again, json={"archived": False})
            await self._call(route, data, files)

    async def remove(self, conversation: Conversation, native: str) -> None:
        """Delete the message in any channel or thread of the conversation."""
        for channel in self._threads.order(conversation):
            try:
                await self._wire.request(_message("DELETE", channel, native))
            except DiscordRefused as error:
                if error.code not in UNKNOWN:
                    raise
            else:
                return

    async def draft(self, conversation: Conversation, key: int, text: str) -> None:
        """Do nothing: Discord has no drafts (abilities)."""

    async def tell(self, conversation: Conversation, press: str, text: str) -> None:
        """A message that only who pressed sees; the press itself was acknowledged when it came."""
        application, _, token = press.partition("/")
        if not text or not token:
            return
        await self._receiver.wait_acknowledged(token)
        ids = self._memory.commands
        text = write_commands(text, partial(write_command, ids=ids), moments=True)
        text = write_moments(text, write_moment)
        shown = text if len(text) <= MAX_TOLD else f"{text[: MAX_TOLD - 1]}…"
        flags = EPHEMERAL | SUPPRESS_EMBEDS
        data = {"content": shown, "flags": flags, "allowed_mentions": NO_PINGS}
        path = "/webhooks/{webhook_id}/{webhook_token}"
        try:
            route = Route("POST", path, webhook_id=application, webhook_token=token)
            await self._wire.request(route, json=data)
        except (Rejected, Ambiguous) as error:  # a press expires after 15 minutes
            log.info("discord_press_unanswered", extra={"error": str(error)})

    async def receipt(self, conversation: Conversation, message: str) -> None:
        """Eyes on the message; where the bot may not react, it is seen writing."""
        try:
            try:
                await self._wire.request(self._eyes("PUT", conversation, message))
            except Rejected:
                await self.show_work(conversation, message)
        except DeliveryError as error:
            log.debug("discord_no_receipt", extra={"error": str(error)})

    async def clear_receipt(self, conversation: Conversation, message: str) -> None:
        """Remove the eyes."""
        try:
            await self._wire.request(self._eyes("DELETE", conversation, message))
        except (Rejected, Ambiguous) as error:
            log.debug("discord_receipt_stays", extra={"error": str(error)})

    async def show_work(self, conversation: Conversation, message: str) -> bool:
        """Seen typing, for 10 seconds."""
        channel, *_ = self._threads.order(conversation)
        path = "/channels/{channel_id}/typing"
        try:
            await self._wire.request(Route("POST", path, channel_id=channel))
        except (Rejected, Ambiguous) as error:
            log.debug("discord_work_not_shown", extra={"error": str(error)})
        return False

    def _eyes(self, method: str, conversation: Conversation, message: str) -> Route:
        channel, *_ = self._threads.order(conversation)
        if message == conversation.thread:  # it is where its thread begins
            channel = conversation.channel
        path = "/channels/{channel_id}/messages/{message_id}/reactions/{emoji}/@me"
        return Route(method, path, channel_id=channel, message_id=message, emoji=EYES)

    async def fetch(self, attachment: Attachment, to: BinaryIO) -> None:
        """Fetch at most 25 MB. The file's address is requested again: it is valid for a day."""
        if attachment.size > MAX_FETCHED:
            raise Rejected("the file is larger than 25 MB")
        try:
            await self._download(await self._url_of(attachment), to)
        except Ambiguous as error:
            raise Unsent(str(error)) from None  # a download may be repeated

    async def _url_of(self, attachment: Attachment) -> str:
        pieces = attachment.ref.split("/")
        if len(pieces) != 3 or not all(map(str.isdecimal, pieces)):
            raise Rejected("Discord does not hand out this file")
        channel, message, number = pieces
        told = await self._wire.request(_message("GET", channel, message))
        found = files_of(told) if isinstance(told, dict) else ()
        url = next((one.get("url") for one in found if one.get("id") == number), None)
        if not isinstance(url, str):
            raise Rejected("the file is not there any more")
        parts = urlsplit(url)
        if parts.netloc != self._own_host and (
            parts.scheme != "https" or parts.netloc not in FILE_HOSTS
        ):
            raise Rejected("the file is not on Discord's servers")
        return url

    async def _download(self, url: str, to: BinaryIO) -> None:
        taken = 0
        async with self._wire.download(url) as chunks:
            async for chunk in chunks:
                taken += len(chunk)
                if taken > MAX_FETCHED:
                    raise Rejected("the file is larger than 25 MB")
                to.write(chunk)

    async def _call(
        self, route: Route, data: dict[str, object], files: Sequence[DiscordUpload]
    ) -> object:
        if not files:
            return await self._wire.request(route, json=data)
        named = [{"id": str(n), "filename": source.name} for n, source in enumerate(files)]
        async with _open_parts(files, self._outputs) as parts:
            return await self._wire.request(route, json=data | {"attachments": named}, parts=parts)

    def _touch(self) -> None:
        if not self._wire.token_refused:
            self.last_contact = clock.monotonic()

    def _lose_contact(self) -> None:
        self.last_contact = 0.0


def _body(payload: bytes) -> dict[str, object]:
    data: dict[str, object] = msgspec.json.decode(payload)
    return data


def _sources(data: dict[str, object]) -> Sequence[DiscordUpload]:
    """Remove the files that a payload names, and return them."""
    return msgspec.convert(data.pop("files", ()), tuple[DiscordUpload, ...])


def _message(method: str, channel: str, message: str) -> Route:
    if not message.isdecimal():
        raise Rejected(f"not a Discord id: {message!r}")
    path = "/channels/{channel_id}/messages/{message_id}"
    return Route(method, path, channel_id=channel, message_id=message)


@asynccontextmanager
async def _open_parts(
    sources: Sequence[DiscordUpload], outputs: Path | None
) -> AsyncIterator[list[UploadPart]]:
    """`sources` ready to be uploaded. Rejected if a kept copy is not there."""
    async with AsyncExitStack() as stack:
        parts = []
        for source in sources:
            content: BinaryIO | bytes = source.text.encode("utf-8", "replace")
            if source.ref:
                content = await asyncio.to_thread(_open, source, outputs)
                stack.callback(content.close)
            parts.append(UploadPart(name=source.name, mime=source.mime, content=content))
        yield parts


def _open(source: DiscordUpload, outputs: Path | None) -> BinaryIO:
    path = find_copy(outputs, source.ref, source.name)
    try:
        return path.open("rb")
    except OSError:
        raise Rejected(f"the file {source.name} is not there any more") from None
